"""ARPA files, the common format of n-gram programs."""
