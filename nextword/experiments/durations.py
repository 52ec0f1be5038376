"""How long an experiment takes, told before it begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nextword.core.events import Event, Note

LONG = 20  # seconds; what takes longer says so
# Processor seconds of each, measured on one core of a server of 2023; length of a busy one.
SECONDS = {
    "sums-to-one": 2,
    "counts": 1,
    "smoothing": 15,
    "sparsity": 6,
    "window": 32,
    "parallel": 5,
    "chain-rule": 1,
    "random-truncation": 17,
    "vanishing": 55,
    "clipping": 22,
    "initial-state": 18,
    "reach": 120,
    "lstm-or-gru": 55,
    "bidirectional": 9,
    "layers": 40,
    "window-tagger": 26,
    "bidirectional-tagging": 30,
    "pooling": 60,
    "stopping": 4,
    "greedy-or-beam": 4,
    "exposure-bias": 60,
    "babble": 45,
    "forcing": 90,
    "bottleneck": 60,
    "attention": 150,
    "alignment": 12,
    "complexity": 15,
    "three-kinds": 210,
    "many-changes": 110,
    "length": 240,
}


def announce(names: Sequence[str]) -> Iterator[Event]:
    """Say how long these experiments take together, if that is long; one of a plugin is not counted."""
    seconds = sum(SECONDS.get(name, 0) for name in names)
    if seconds > LONG:
        yield Note(f"this takes about {_shown(seconds)} on one core, longer if the machine is busy")


def _shown(seconds: int) -> str:
    if seconds < 90:
        return f"{10 * round(seconds / 10)} seconds"
    return f"{round(seconds / 60)} minutes"
