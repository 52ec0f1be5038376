"""Questions with one right answer, as figures of a language model: copy, recall, brackets, minimal pairs.

Each question is a text and a few continuations; the model is right where the right one is the most probable.
Copy: Graves et al. 2014; recall of a value by its key: Arora et al. 2024; brackets of two kinds (Dyck-2):
Hewitt et al. 2020; minimal pairs: Warstadt et al. 2020 (BLiMP). A model that was trained on text shows what
it can do in context; one that was trained on `questions_text` what its parts can learn.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nextword.core.contracts import END, BlankFiller, LanguageModel, Tokenizer
from nextword.core.errors import DataError
from nextword.evaluation.lm.pseudo import pseudo_logprobs
from nextword.models.distributions import as_numpy

LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
DIGITS = tuple("0123456789")
OPEN, CLOSED = "([", ")]"
_ROWS = 64  # texts that are scored at once


class Question(NamedTuple):
    """A text, continuations, and which of them is right."""

    text: str
    options: tuple[str, ...]
    right: int


@dataclass(frozen=True)
class Figure:
    """How many questions were answered, and the share that guessing reaches."""

    share: float
    chance: float
    count: int


def copy(random: np.random.Generator, length: int = 8) -> Question:
    """Ask for a letter of a repetition: ``c a f = c a`` is continued by ``f``."""
    letters = random.choice(LETTERS, length, replace=False).tolist()
    at = int(random.integers(1, length))
    options = tuple(sorted(letters))
    return Question(" ".join([*letters, "=", *letters[:at]]), options, options.index(letters[at]))


def recall(random: np.random.Generator, length: int = 6) -> Question:
    """Ask for the value of a key: ``a 3 b 7 c 1 ; b`` is continued by ``7``."""
    keys = random.choice(LETTERS, length, replace=False).tolist()
    values = random.choice(DIGITS, length, replace=False).tolist()
    asked = int(random.integers(length))
    pairs = [word for pair in zip(keys, values, strict=True) for word in pair]
    options = tuple(sorted(values))
    return Question(" ".join([*pairs, ";", keys[asked]]), options, options.index(values[asked]))


def dyck(random: np.random.Generator, length: int = 16) -> Question:
    """Ask which bracket closes: ``( [ ] ( [`` is continued by ``]``."""
    opened: list[int] = []
    written: list[str] = []
    while len(written) < length or not opened:
        if opened and random.random() < 0.5:
            written.append(CLOSED[opened.pop()])
        else:
            opened.append(int(random.integers(2)))
            written.append(OPEN[opened[-1]])
    return Question(" ".join(written), tuple(CLOSED), opened[-1])


PROBES: dict[str, Callable[[np.random.Generator], Question]] = {"copy": copy, "recall": recall, "dyck": dyck}


def questions(kind: str, count: int, seed: int = 0) -> list[Question]:
    """Return so many questions of a kind, always the same for a seed."""
    random = np.random.default_rng((seed, *kind.encode()))
    return [PROBES[kind](random) for _ in range(count)]


def questions_text(kind: str, count: int, seed: int = 1) -> str:
    """Return questions with their answers, a line each, to train on; another seed gives other questions."""
    return "".join(f"{each.text} {each.options[each.right]}\n" for each in questions(kind, count, seed))


def probe(model: LanguageModel, tokenizer: Tokenizer, kind: str, count: int = 200, seed: int = 0) -> Figure:
    """Return the share of questions of a kind (copy, recall, dyck) that a model answers."""
    asked = questions(kind, count, seed)
    texts = [(each.text, f" {option}") for each in asked for option in each.options]
    logp = iter(_continued(model, tokenizer, texts))
    right = sum(int(np.argmax([next(logp) for _ in each.options])) == each.right for each in asked)
    return Figure(right / len(asked), float(np.mean([1 / len(each.options) for each in asked])), len(asked))


def _continued(model: LanguageModel, tokenizer: Tokenizer, texts: Sequence[tuple[str, str]]) -> list[float]:
    """Return log p of the second part of each text after the first."""
    rows = []
    for first, second in texts:
        whole = [int(index) for index in tokenizer.encode(first + second)]
        before = len(tokenizer.encode(first))
        rows.append((whole, min(before, len(whole) - 1)))
    scores = _scores(model, [whole for whole, _ in rows])
    return [float(logp_T[before:].sum()) for (_, before), logp_T in zip(rows, scores, strict=True)]


def _scores(model: LanguageModel, rows: Sequence[list[int]]) -> list[np.ndarray]:
    """Return log p of every token of each row, after START."""
    found = []
    for at in range(0, len(rows), _ROWS):
        part = rows[at : at + _ROWS]
        lengths_B = np.array([len(row) for row in part])
        ids_BT = np.zeros((len(part), int(lengths_B.max())), np.int64)
        for ids_T, row in zip(ids_BT, part, strict=True):
            ids_T[: len(row)] = row
        logp_BT = as_numpy(model.score(ids_BT, lengths_B, model.start(len(part)))[0])
        found += [logp_T[:length] for logp_T, length in zip(logp_BT, lengths_B, strict=True)]
    return found


class MinimalPair(NamedTuple):
    """Two sentences that differ in one thing; only the first is good."""

    good: str
    bad: str
    kind: str = ""


def minimal_pairs(
    model: LanguageModel | BlankFiller, tokenizer: Tokenizer, pairs: Iterable[MinimalPair]
) -> dict[str, Figure]:
    """Return the share of pairs whose good sentence is the more probable one, by kind and of ``all``.

    A masked model compares pseudo-likelihoods.
    """
    pairs = list(pairs)
    rows = [[int(index) for index in tokenizer.encode(text)] + [END] for pair in pairs for text in pair[:2]]
    if isinstance(model, BlankFiller):
        ids = [np.array(row) for row in rows]
        sums = np.array([pseudo_logprobs(model, row, np.arange(len(row) - 1))[0].sum() for row in ids])
    else:
        ends = tokenizer.unit == "line"
        sums = np.array([float(logp_T[: None if ends else -1].sum()) for logp_T in _scores(model, rows)])
    is_right = sums[::2] > sums[1::2]
    kinds = sorted({pair.kind for pair in pairs if pair.kind})
    found = {"all": Figure(float(is_right.mean()), 0.5, len(pairs))}
    for kind in kinds:
        own = is_right[[pair.kind == kind for pair in pairs]]
        found[kind] = Figure(float(own.mean()), 0.5, len(own))
    return found


def read_pairs(path: Path, each: int = 20) -> list[MinimalPair]:
    """Read the first pairs of each paradigm; their kind is the field of grammar.

    A table (.tsv, .tsv.gz) with the columns good, bad, field and pair, the number of a pair within its
    paradigm; or a file of BLiMP's own (.jsonl).
    """
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
            if path.suffixes[:1] == [".jsonl"]:
                rows = [json.loads(line) for line in file]
                return [MinimalPair(row["sentence_good"], row["sentence_bad"], row["field"]) for row in rows]
            table = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            first = [row for row in table if int(row["pair"]) < each]
        return [MinimalPair(row["good"], row["bad"], row["field"]) for row in first]
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise DataError(f"cannot be read as minimal pairs ({error})", str(path)) from error
