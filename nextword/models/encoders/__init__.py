"""Encoders: a vector for each word from the whole sentence; one kind a file."""
