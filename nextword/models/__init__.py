"""Networks built from parts, one family a file, and the language model made of each."""
