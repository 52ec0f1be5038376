"""Count-based language models: n-grams of any order and smoothing, and the unbounded n-gram."""
