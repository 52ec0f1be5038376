"""What one example is: how it is read, batched, learned from, measured and predicted."""
