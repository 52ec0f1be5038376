"""What was written against what should have been: one measure a file, each from counts by sentence."""
