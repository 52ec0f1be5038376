"""Hold the parts that networks are built from, one idea a file.

The catalog names parts by slot (cell, norm, ffn, join, mixer, position, head, …); a model's settings choose
them, and nothing here tests a model's name. State goes in and comes out; a part remembers nothing.
"""
