"""The run folder on disk: atomic writes, manifest, checkpoints and names."""
