"""Modifications of one model side by side: rows at a matched budget, each with a learning rate of its own.

bench(setup) -> Iterator[Event]        the last event holds a Benched       bench.py
set_up(...) -> BenchSetup              rows and budget checked, text split  setup.py
"""
