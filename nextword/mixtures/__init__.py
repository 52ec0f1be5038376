"""Models made of models: interpolation, caches, neighbours, dynamic evaluation."""
