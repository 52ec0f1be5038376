"""How files of other shapes become pairs of a source and a target: one file a shape."""
