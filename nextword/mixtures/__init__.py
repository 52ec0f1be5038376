"""Models made of models: interpolation, caches, neighbors, dynamic evaluation."""
