"""``--minutes``: the clock, a few trial steps, and a model size that fits the time."""
