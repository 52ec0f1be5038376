"""Smoothings turn counts into probabilities; each is a small class in a file of its own.

To add one: a class with `estimate(counts, settings, predictable) -> Estimate` in a new file here,
and one line in the slot "smoothing" of `core/catalog.py`. Its tests come from the catalog.
"""
