"""Mixtures that are trained: members, their weights and memories."""
