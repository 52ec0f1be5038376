"""Measures of a model on a text (``lm``), lines kept or reordered by score (``lines``), and a compressor."""
