"""The verbs: train, load, score, next, generate, evaluate, compress, filter, rescore, mix, compare, export.

The package root offers them lazily (``import nextword`` loads nothing heavy); the command line calls the same
functions. What takes long yields events, and a plain function beside it returns the result.
"""
