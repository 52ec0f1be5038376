"""Objectives: losses, what the model reads while it trains, and how far gradients go back."""
