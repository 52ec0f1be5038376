"""Batches for training: columns of a stream, windows, and whole sequences."""
