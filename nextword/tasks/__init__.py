"""Tasks: what an example is, and how it is read, batched, trained on, measured and predicted."""
