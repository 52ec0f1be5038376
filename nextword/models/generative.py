"""The family ``generative``: a language model of n-grams for each label, and Bayes' rule.

p(label | text) ∝ p(label) Π p(token | tokens before, label). With n-grams of one word this is naive Bayes
(Maron 1961), with characters it tells languages apart (Dunning 1994) and authors (Mosteller & Wallace 1964:
words). The models of all labels share one table, so that hundreds of labels are scored in one pass. Where a
text may have several labels, each has a model of the texts with it and one of those without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from nextword.core.errors import DamagedError
from nextword.core.events import Done, Event
from nextword.core.family import Budget, Cost
from nextword.core.settings import Settings, TrainSettings
from nextword.data.classes import ClassVocabulary
from nextword.models.arrays import load_array
from nextword.models.calibration import Calibration
from nextword.models.selection import Examples, LabelledData, Logits, fit_best
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun
from nextword.text.hashing import Hashes, tokens

_FACTS = "generative.json"
_CHUNK = 4096  # texts that are scored at once
_LONGEST = {"words": 2, "characters": 5}  # n-grams that are tried
_DISCOUNT = 0.75  # of absolute discounting
Array = npt.NDArray[Any]
_ARRAYS: Mapping[str, Any] = {
    "keys": np.uint64, "rows": np.int32, "starts": np.int64, "labels": np.int32, "gains": np.float32,
    "losses": np.float32, "priors": np.float64,
}  # fmt: skip


class GenerativeSettings(Settings):
    """What the language models read, and how they are smoothed."""

    tokens: Literal["auto", "words", "characters"] = Field(
        "auto", description="what n-grams are made of; auto: by held-out texts"
    )
    order: int = Field(
        0, ge=0, le=20, description="longest n-grams; 0: 1 or 2 words, by held-out texts, or 5 characters"
    )
    smoothing: Literal["auto", "witten-bell", "absolute", "add"] = Field(
        "auto",
        description="of the n-grams of each label; auto: absolute; for single words add, too, is tried",
    )
    alpha: float = Field(1.0, gt=0, le=1000, description="with add: what is added to every count")
    length: float = Field(
        0.5, ge=0, le=1, description="scores are divided by the number of tokens to this power"
    )


@dataclass(frozen=True)
class _Way:
    """One choice of what may be left open."""

    tokens: str
    order: int
    smoothing: str = "absolute"

    def __str__(self) -> str:
        kind = self.tokens if self.order > 1 else self.tokens[:-1]
        return f"n-grams of {self.order} {kind} ({self.smoothing})"

    @property
    def work(self) -> float:
        """Return the n-grams of a word."""
        return float(self.order * (6 if self.tokens == "characters" else 1))


@dataclass(frozen=True)
class Table:
    """The n-grams of all labels: row 0 is the empty n-gram, and row i has entries starts[i]:starts[i + 1]."""

    keys: Array  # hashes of n-grams, with open addressing
    rows: Array  # their rows
    starts: Array
    labels: Array  # of an entry: the label
    gains: Array  # and what it adds to the probability of its last token
    losses: Array  # and what the probability of every next token is multiplied with
    priors: Array  # log p(label)
    vocabulary: int  # different tokens


@dataclass
class GenerativeClassifier:
    """A language model for each label."""

    vocabulary: ClassVocabulary
    way: _Way
    table: Table
    length: float
    calibration: Calibration = field(default_factory=Calibration)
    held_out_logits: Logits | None = None  # of held-out texts, before they were learned from
    is_probability = True

    @property
    def parameters(self) -> int:
        """Return the number of counts that are kept, one for each n-gram and label."""
        return len(self.table.labels)

    def logits(self, texts: list[str]) -> Logits:
        """Return log p(label, text), or for several labels the log odds, divided by a power of the length."""
        from nextword.models.generative_kernels import score

        labels, table = len(self.vocabulary.labels), self.table
        found_NK = np.empty((len(texts), labels), np.float64)
        for start in range(0, len(texts), _CHUNK):
            made = tokens(texts[start : start + _CHUNK], self.way.tokens == "characters")
            scores_NC = table.priors + score(
                made.values, made.bounds, table.keys, table.rows, table.starts, table.labels, table.gains,
                table.losses, len(table.priors), self.way.order, 1.0 / (table.vocabulary + 1),
            )  # fmt: skip
            if self.vocabulary.several:
                scores_NC = scores_NC[:, :labels] - scores_NC[:, labels:]
            found_NK[start : start + len(scores_NC)] = (
                scores_NC / np.maximum(1, made.lengths)[:, None] ** self.length
            )
        return found_NK


class GenerativeFamily:
    """Classifiers made of a language model for each label."""

    name = "generative"
    task = "classify"
    Settings = GenerativeSettings
    Training = TrainSettings
    defaults: Mapping[str, Any] = {}
    default_tokenizer = ""
    holds_text = False  # n-grams are kept as hashes
    measures = True

    def fit(self, data: LabelledData, settings: Any, budget: Budget) -> Iterator[Event]:
        """Count what the settings leave open in each way, and keep the best."""
        own: GenerativeSettings = settings.model
        vocabulary = data.vocabulary

        def fit(examples: Examples, way: _Way) -> GenerativeClassifier:
            return GenerativeClassifier(vocabulary, way, count(examples, way, own), own.length)

        model, logits_NK = yield from fit_best(_ways(own), fit, data, budget.seconds)
        model.held_out_logits = logits_NK
        yield Done(model)

    def estimate(self, settings: GenerativeSettings, size: int, text: Any) -> Cost:
        """Return what counting texts of this size in bytes takes."""
        work = sum(way.work for way in _ways(settings))
        return Cost(size // 6, 1.0 + work * size / 2e7, 200_000_000 + 60 * size, 10 * size)

    def save(self, model: GenerativeClassifier, folder: NewRun) -> None:
        """Write the table."""
        for name in _ARRAYS:
            folder.write_array(f"{name}.npy", getattr(model.table, name))
        facts = {
            "tokens": model.way.tokens, "order": model.way.order, "smoothing": model.way.smoothing,
            "vocabulary": model.table.vocabulary,
            "slots": len(model.table.keys), "entries": len(model.table.labels), "length": model.length,
        }  # fmt: skip
        folder.write_json(_FACTS, facts)
        model.calibration.save(folder)

    def load(
        self, folder: RunFolder, settings: GenerativeSettings, vocabulary: ClassVocabulary
    ) -> GenerativeClassifier:
        """Read the table, which must fit the labels and be consistent."""
        try:
            facts = folder.read_json(_FACTS)
            way = _Way(str(facts["tokens"]), int(facts["order"]), str(facts["smoothing"]))
            slots, entries, distinct = (int(facts[name]) for name in ("slots", "entries", "vocabulary"))
            length = float(facts["length"])
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(f"{folder.path / _FACTS} is damaged ({error}); train the run again") from error
        classes = len(vocabulary.labels) * (2 if vocabulary.several else 1)
        sizes = {"keys": slots, "rows": slots, "starts": None, "priors": classes}
        made = {
            name: load_array(folder, f"{name}.npy", kind, (sizes.get(name, entries),))
            for name, kind in _ARRAYS.items()
        }
        table = Table(**made, vocabulary=distinct)
        if way.tokens not in _LONGEST or not 1 <= way.order <= 20 or not _is_sound(table, classes):
            raise DamagedError(
                f"the arrays in '{folder.path}' do not fit together or the {len(vocabulary.labels)} labels; "
                "train the run again"
            )
        return GenerativeClassifier(vocabulary, way, table, length, Calibration.load(folder))


def _is_sound(table: Table, classes: int) -> bool:
    """Return whether every number that the kernel follows stays within its array."""
    slots, rows = len(table.keys), len(table.starts) - 1
    if slots < 2 or slots & (slots - 1) or rows < 1 or table.vocabulary < 0 or not (table.keys == 0).any():
        return False
    starts = table.starts
    ordered = starts[0] == 0 and starts[-1] == len(table.labels) and bool((np.diff(starts) >= 0).all())
    inside = bool((table.rows >= 0).all() and (table.rows < rows).all())
    return ordered and inside and bool((table.labels >= 0).all() and (table.labels < classes).all())


def _ways(settings: GenerativeSettings) -> list[_Way]:
    """Return what is tried: what the settings leave open."""
    kinds = ["words", "characters"] if settings.tokens == "auto" else [settings.tokens]
    smoothing = "absolute" if settings.smoothing == "auto" else settings.smoothing
    made = []
    for kind in kinds:
        shortest = 1 if kind == "words" else _LONGEST[kind]
        orders = [settings.order] if settings.order else range(shortest, _LONGEST[kind] + 1)
        made += [_Way(kind, order, smoothing) for order in orders]
    if settings.smoothing == "auto" and made[0].tokens == "words" and made[0].order == 1:
        made.insert(0, replace(made[0], smoothing="add"))
    return made


def count(examples: Examples, way: _Way, settings: GenerativeSettings) -> Table:
    """Count the n-grams of all labels and smooth them.

    For each n-gram and label: how often it was seen, how often another token followed it, and how many
    different ones did.
    """
    text_of, class_of, classes, priors_C = _classes(examples)
    made = tokens(examples.texts, way.tokens == "characters")
    found = _count_pairs(made, text_of, class_of, classes, way.order)
    row, label = found.pairs // classes, found.pairs % classes
    context = np.searchsorted(found.pairs, found.parents[row] * classes + label)[classes:]
    followed = np.bincount(context, weights=found.times[classes:], minlength=len(row))
    types = np.bincount(context, minlength=len(row)).astype(np.float64)
    times = found.times.astype(np.float64)
    gains, losses = _smoothed(
        way.smoothing, settings.alpha, times, followed, types, context, found.vocabulary
    )
    starts = np.searchsorted(row, np.arange(len(found.parents) + 1)).astype(np.int64)
    return Table(
        found.keys, found.rows, starts, label.astype(np.int32), gains.astype(np.float32),
        losses.astype(np.float32), priors_C, found.vocabulary,
    )  # fmt: skip


class _Pairs(NamedTuple):
    """N-grams with the classes whose texts have them, the empty n-gram of every class first."""

    keys: Array  # hashes of n-grams, with open addressing
    rows: Array  # their rows
    parents: Array  # of each row: the row of the n-gram without its last token
    pairs: Array  # row * classes + class, sorted
    times: Array  # how often each was seen
    vocabulary: int


def _count_pairs(made: Hashes, text_of: Array, class_of: Array, classes: int, order: int) -> _Pairs:
    """Count n-grams from short to long: one row for each, whatever its classes."""
    from nextword.models.generative_kernels import number

    lengths = made.lengths[text_of]
    class_at = np.repeat(class_of, lengths)  # the tokens of each text, once for each of its classes
    shift = made.bounds[:-1][text_of] - (np.cumsum(lengths) - lengths)
    place_at = np.repeat(shift, lengths) + np.arange(lengths.sum())
    keys, rows, used = np.zeros(1 << 12, np.uint64), np.zeros(1 << 12, np.int32), 1
    parents = [np.zeros(1, np.int64)]
    pairs, times = [np.arange(classes, dtype=np.int64)], [np.zeros(classes, np.int64)]
    shorter = np.zeros(len(made.values), np.int32)  # the row of the n-gram that ends before each token
    for length in range(1, order + 1):
        row_of, keys, rows, after = number(made.values, made.bounds, length, keys, rows, used)
        seen = np.flatnonzero(row_of >= 0)
        own = np.zeros(after - used, np.int64)
        own[row_of[seen] - used] = shorter[seen]
        parents.append(own)
        row_at = row_of[place_at].astype(np.int64)
        is_there = row_at >= 0
        found, counts = np.unique(row_at[is_there] * classes + class_at[is_there], return_counts=True)
        pairs.append(found)
        times.append(counts)
        used, shorter = after, np.concatenate((np.full(1, -1, np.int32), row_of[:-1]))[: len(row_of)]
    return _Pairs(
        keys, rows, np.concatenate(parents), np.concatenate(pairs), np.concatenate(times), len(parents[1])
    )


def _classes(examples: Examples) -> tuple[Array, Array, int, Array]:
    """Return pairs of a text and a class it belongs to, the number of classes, and the log of their shares.

    With several labels each has two: the texts with it, and those without it.
    """
    texts = np.arange(len(examples.texts))
    priors_K = examples.priors()
    if not examples.several:
        return texts, examples.labels, examples.count, np.log(priors_K)
    has_NK = np.zeros((len(texts), examples.count), np.bool_)
    has_NK[np.repeat(texts, np.diff(examples.bounds)), examples.labels] = True
    text_of, class_of = np.nonzero(np.concatenate((has_NK, ~has_NK), axis=1))
    return text_of, class_of, 2 * examples.count, np.log(np.concatenate((priors_K, 1 - priors_K)))


def _smoothed(
    smoothing: str,
    alpha: float,
    times: Array,
    followed: Array,
    types: Array,
    context: Array,
    vocabulary: int,
) -> tuple[Array, Array]:
    """Return what an n-gram adds to the probability of its last token, and the share left to shorter ones.

    Witten & Bell 1991: (c + T p) / (N + T), with T different tokens seen after the context. Absolute: (c - d
    + d T p) / N (Ney et al. 1994). Add: (c + αV p) / (N + αV), which with one word is (c + α) / (N + αV).
    """
    seen = followed > 0
    safe = np.maximum(followed, 1)
    if smoothing == "absolute":
        gains, total = np.maximum(times - _DISCOUNT, 0), safe
        losses = np.where(seen, _DISCOUNT * types / safe, 1.0)
    else:
        added = np.full_like(types, alpha * (vocabulary + 1))
        extra = types if smoothing == "witten-bell" else added
        gains, total = times, safe + extra
        losses = np.where(seen, extra / total, 1.0)
    gains[len(gains) - len(context) :] /= total[context]
    gains[: len(gains) - len(context)] = 0.0
    return gains, losses


FAMILY = GenerativeFamily()
