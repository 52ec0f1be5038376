"""Files in and out that other programs read and write."""
