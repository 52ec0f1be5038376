"""Lines by their scores: scored, filtered, and n-best lists reordered."""
