"""Models side by side: the same text, the same split, one scale.

compare(setup) -> Iterator[Event]      the last event holds a Comparison    compare.py
set_up(...) -> Setup                   settings checked, text split         setup.py
"""
