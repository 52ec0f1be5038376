"""What training reads at a time: columns of a stream, windows, and whole sequences."""
