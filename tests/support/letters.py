"""A tokenizer of letters, small enough for exhaustive tests."""

from __future__ import annotations

import numpy as np


class Letters:
    """A tokenizer of letters: id 3 is a, 4 is b, …"""

    def encode(self, text):
        return np.array([ord(c) - 94 for c in text if c != " "])

    def decode(self, ids):
        return "".join(chr(94 + i) for i in ids if i > 2)

    def decoder(self):
        class Decoder:
            def push(self, word):
                return chr(94 + word) if word > 2 else ""

            def flush(self):
                return ""

        return Decoder()
