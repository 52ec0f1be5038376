"""Small texts that many tests learn from, times as many as they need."""

from __future__ import annotations

LINES = "the cat sat on the mat\nthe dog sat on the log\n"
MEETING = LINES + "a cat and a dog met\n"
TWO_DOCUMENTS = LINES + "\na cat and a dog\n"
SENTENCES = "the cat sat on the mat .\nthe dog saw the cat\n\na dog ran and ran .\n"
