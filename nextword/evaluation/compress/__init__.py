"""The proof of bits per byte: a compressor."""
