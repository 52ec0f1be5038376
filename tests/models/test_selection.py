"""Ways to fit a classifier are tried as far as there is time."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from nextword.core.events import Note
from nextword.models import selection
from nextword.models.selection import fit_best

TARGETS = np.array([0, 1, 0, 1])


@dataclass(frozen=True)
class Way:
    """Fitting takes as many seconds as there is work."""

    work: float


@pytest.fixture
def clock(monkeypatch):
    found = SimpleNamespace(now=0.0)
    monkeypatch.setattr("nextword.models.selection.time", SimpleNamespace(monotonic=lambda: found.now))
    monkeypatch.setattr(selection.Examples, "of", lambda *parts, vocabulary: len(parts))
    return found


def fitted(clock, seconds, was_held_out=True):
    """Return the work of what was fitted, in order, and the notes; the first way is the best."""
    done, texts = [], SimpleNamespace(texts=["a"] * 4, targets=TARGETS)

    def fit(parts, way):
        clock.now += way.work
        done.append((way.work, parts))
        return SimpleNamespace(logits=lambda _: np.eye(2)[TARGETS if way.work == 1 else 1 - TARGETS])

    data = SimpleNamespace(
        vocabulary=SimpleNamespace(several=False), learned=texts, measured=texts, was_held_out=was_held_out
    )
    events = list(fit_best([Way(1.0), Way(2.0), Way(10.0)], fit, data, seconds))
    return done, [each.message for each in events if isinstance(each, Note)]


def test_without_a_limit_every_way_is_tried_and_the_best_learns_all_texts(clock):
    assert fitted(clock, float("inf"))[0] == [(1, 1), (2, 1), (10, 1), (1, 2)]


@pytest.mark.parametrize(
    ("seconds", "was_held_out", "expected"),
    [
        (23, True, [(1, 1), (2, 1), (10, 1), (1, 2)]),
        (22, True, [(1, 1), (2, 1), (1, 2)]),
        (13, False, [(1, 1), (2, 1), (10, 1)]),
        (4.5, True, [(1, 1), (1, 2)]),
        (1, True, [(1, 1)]),
    ],
)
def test_a_way_without_time_is_left_out_but_never_the_first(clock, seconds, was_held_out, expected):
    done, notes = fitted(clock, seconds, was_held_out)
    assert done == expected
    left_out = {1.0, 2.0, 10.0} - {work for work, _ in expected}
    assert [note for note in notes if "no time" in note] == [
        f"there is no time to try {Way(work)}" for work in sorted(left_out)
    ]
