"""The compiled paths of n-gram models: counting, smoothing, lookup and scoring."""
