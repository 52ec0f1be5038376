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


class Texts(int):
    """So many sets of texts; 0: the first few, which are not learned from."""

    def first(self, _):
        return Texts(0)


@pytest.fixture
def clock(monkeypatch):
    found = SimpleNamespace(now=0.0)
    monkeypatch.setattr("nextword.models.selection.time", SimpleNamespace(monotonic=lambda: found.now))
    monkeypatch.setattr(selection.Examples, "of", lambda *parts, vocabulary: Texts(len(parts)))
    return found


def fitted(clock, seconds, was_held_out=True, compiling=0.0):
    """Return the work of what was fitted, in order, and the notes; the first way is the best.

    The first fit of all takes ``compiling`` seconds more.
    """
    done, texts = [], SimpleNamespace(texts=["a"] * 4, targets=TARGETS)

    def fit(parts, way):
        nonlocal compiling
        clock.now += compiling + (way.work if parts else 0.0)
        compiling = 0.0
        if parts:
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


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(43, [(1, 1), (2, 1), (10, 1), (1, 2)]), (42, [(1, 1), (2, 1), (1, 2)]), (21.5, [(1, 1)])],
)
def test_compiling_takes_time_but_does_not_make_fitting_slow(clock, seconds, expected):
    assert fitted(clock, seconds, compiling=20.0)[0] == expected


def test_the_first_texts_keep_their_labels():
    every = selection.Examples(
        ["a", "b", "c"], np.array([0, 1, 2, 1]), np.array([0, 2, 3, 4]), count=3, several=True
    )
    few = every.first(2)
    assert (few.texts, few.labels.tolist(), few.bounds.tolist()) == (["a", "b"], [0, 1, 2], [0, 2, 3])
    assert every.first(9).labels.tolist() == every.labels.tolist()
