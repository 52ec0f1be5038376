"""Models side by side: the same text, the same split, one scale.

compare(contest) -> Iterator[Event]      the last event holds a Comparison    compare.py
enter(...) -> Contest                    settings checked, text split         contest.py
"""
