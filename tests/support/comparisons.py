"""Small texts to compare models on, the result of a comparison, and made-up rows of one."""

from __future__ import annotations

import random

import numpy as np
from event_streams import until_done

from nextword.comparison.compare import compare
from nextword.comparison.rows import Row

BLOCKS = 60


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
    return until_done(compare(setup))


def rows(model, bits, seeds=1, jitter=0.002, seed=0, **more):
    """Made-up rows of one model: blocks of 1000 bytes that cost about so many bits per byte."""
    rng = np.random.default_rng(seed)
    text = np.random.default_rng(9).normal(1, 0.1, BLOCKS)
    found = []
    for number in range(seeds):
        mean = bits + rng.normal(0, jitter) if seeds > 1 else bits
        blocks = 1000 * mean * text / text.mean() + rng.normal(0, 3, BLOCKS)
        curve = [(float(s), 1000 * s, mean + 1 / s) for s in (1, 5, 10)] if seeds > 1 else []
        found.append(
            Row(model, "", mean, 16**mean, seed=number if seeds > 1 else None, numbers=1000, size=10**6,
                train_seconds=10.0 if seeds > 1 else 1.0, tokens_per_second=1e5, blocks=blocks.tolist(),
                curve=curve, tune_bits=mean, surprise=[[("<b>", 3.0), ("世界", None)]], sentences=["so <i>"],
                tokenizer="bpe", run=model, signature=f"bits|{model}", **more)
        )  # fmt: skip
    return found
