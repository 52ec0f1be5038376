"""The suffix array behind the unbounded n-gram: built, searched and walked."""
