"""The suffix array behind the unbounded n-gram: building, searching and walking."""
