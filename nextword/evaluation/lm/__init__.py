"""Numbers of language models: perplexity, bits per byte, surprise, evidence."""
