"""What a run is: its settings, facts and model card, opening and saving."""
