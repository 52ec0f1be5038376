"""Texts from files, and what is known about them before a model sees them."""
