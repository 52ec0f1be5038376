"""Training of mixtures: their parts, weights and memories."""
