"""ARPA files, the common language of n-gram programs."""
