"""A small n-best list as Kaldi writes it."""

from __future__ import annotations

KALDI = b"""utt-a-1 -10.5 the cat sat
utt-a-2 -10.0 cat the sat
utt-b-1 -3 on mat
utt-b-2 -4.5 on the mat
"""


def lines(data: bytes) -> list[bytes]:
    """Cut a file into its lines."""
    return data.split(b"\n")
