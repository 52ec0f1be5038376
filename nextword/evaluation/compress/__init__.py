"""Compression with a model, which shows that bits per byte is a real code length."""
