"""Small texts to compare models on, and the result of a comparison."""

from __future__ import annotations

import random

from nextword.comparison.compare import compare
from nextword.core.events import Done


def write(path, lines=300, seed=1):
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(40)] + ["<script>alert(1)</script>", "x&y"]
    with open(path, "w") as file:
        for _ in range(lines):
            file.write(
                " ".join(rng.choices(words, weights=range(len(words), 0, -1), k=rng.randint(3, 12))) + ".\n"
            )
    return str(path)


def result(setup):
    *events, last = list(compare(setup))
    assert isinstance(last, Done)
    return last.result, events
