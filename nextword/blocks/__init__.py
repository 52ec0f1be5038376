"""Tensors: the parts that neural models are put together from, one idea a file.

Parts are named in the catalog by slot (cell, norm, ffn, join, mixer, position, head); a model's settings name
them, and nothing here knows a model's name. State goes in and comes out; nothing is remembered on a part.
"""
