"""Pairs of texts that a small network learns in seconds: colours and animals, in another order."""

from __future__ import annotations

import random

WORDS = {
    "red": "rouge", "blue": "bleu", "green": "vert", "small": "petit", "dog": "chien", "cat": "chat",
    "bird": "oiseau", "sees": "voit", "eats": "mange", "the": "le",
}  # fmt: skip


def pairs(count: int = 200, seed: int = 0) -> list[tuple[str, str]]:
    """Return sentences and their translations: an adjective follows its noun there."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        halves = []
        for _ in range(2):
            adjective = draw.choice(["red", "blue", "green", "small"])
            halves.append((adjective, draw.choice(["dog", "cat", "bird"])))
        verb = draw.choice(["sees", "eats"])
        source = f"the {' '.join(halves[0])} {verb} the {' '.join(halves[1])}"
        sides = [f"le {WORDS[noun]} {WORDS[adjective]}" for adjective, noun in halves]
        made.append((source, f"{sides[0]} {WORDS[verb]} {sides[1]}"))
    return made


def table(count: int = 200, seed: int = 0) -> str:
    """Return the pairs as TSV."""
    return "".join(f"{source}\t{target}\n" for source, target in pairs(count, seed))
