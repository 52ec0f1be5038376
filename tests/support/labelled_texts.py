"""Small labelled data that can be learned: sentences with tags, texts with labels."""

from __future__ import annotations

import random

NAMES = ("Ann", "Bob", "Carl", "Dora", "Emil", "Fay")
PLACES = ("Rome", "Oslo", "New York", "Bonn")
VERBS = ("visits", "likes", "leaves", "sees")


def tagged_sentences(count: int = 60, seed: int = 0) -> str:
    """Return sentences in BIO: a person, a verb, a place."""
    draw = random.Random(seed)
    blocks = []
    for _ in range(count):
        name, verb, place = draw.choice(NAMES), draw.choice(VERBS), draw.choice(PLACES)
        rows = [(name, "B-person"), (verb, "O")]
        if draw.random() < 0.5:
            rows.append(("often", "O"))
        rows += [(word, f"{'B' if at == 0 else 'I'}-place") for at, word in enumerate(place.split())]
        rows.append((".", "O"))
        blocks.append("".join(f"{word}\t{tag}\n" for word, tag in rows))
    return "\n".join(blocks)


def labelled_texts(count: int = 80, seed: int = 0) -> str:
    """Return ``text TAB label``: good or bad."""
    draw = random.Random(seed)
    words = {"good": ("fine", "lovely", "great"), "bad": ("dull", "awful", "poor")}
    rows = []
    for at in range(count):
        label = "good" if at % 2 else "bad"
        middle = " ".join(draw.choices(("the", "film", "was", "a", "very"), k=draw.randint(1, 5)))
        rows.append(f"{middle} {draw.choice(words[label])} story\t{label}\n")
    return "".join(rows)


def several_labels(count: int = 160) -> str:
    """Return ``text TAB labels``, separated by commas."""
    rows = []
    for at in range(count):
        labels = [name for number, name in enumerate(("wheat", "corn", "gold")) if at >> number & 1] or [
            "gold"
        ]
        rows.append(f"prices of {' and '.join(labels)} rose by {at} today\t{','.join(labels)}\n")
    return "".join(rows)
