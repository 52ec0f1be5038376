"""The family ``linear``: hashed n-grams of words and characters, averaged, a linear layer, a label.

fastText's idea (Joulin et al. 2017: "Bag of Tricks for Efficient Text Classification"): seconds on a CPU, and
for long texts or little data as good as a network. With few labels each feature has a weight for each label,
the case of vectors of as many dimensions as labels; with many, vectors of `dimension` are averaged. Weights
may begin at, and move in proportion to, the naive Bayes log-count ratios (Wang & Manning 2012: "Baselines
and Bigrams"), or begin at 0 and move in proportion to the inverse document frequency (Spärck Jones 1972).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

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
from nextword.text.hashing import Hashes, about_distinct, buckets, features

_FACTS, _VECTORS, _WEIGHTS, _BIAS = "linear.json", "features.npy", "labels.npy", "bias.npy"
_CHUNK = 4096  # texts that are classified at once
_FEW = 100  # labels up to which each feature has a weight for each
_MOST = 1 << 26  # numbers of the table of features
_OF_CHARACTERS = 5  # the longest n-grams of characters that are tried
_SCALED = {"none": "", "bayes": ", scaled by naive Bayes", "idf": ", scaled by idf"}
_START = 0.5  # the share of the naive Bayes weights that weights begin with
_FIRST_BUCKETS, _LAST_BUCKETS = 10, 24  # as powers of two
Array = npt.NDArray[Any]


class LinearSettings(Settings):
    """What the features are, and how their weights are learned."""

    word_ngrams: int = Field(2, ge=0, le=8, description="longest n-grams of words; 0: none")
    min_n: int = Field(2, ge=1, le=20, description="shortest n-grams of characters")
    max_n: int = Field(
        -1,
        ge=-1,
        le=20,
        description="longest n-grams of characters; 0: none; -1: none or 5, by held-out texts",
    )
    scaling: Literal["auto", "none", "bayes", "idf"] = Field(
        "auto",
        description="bayes: weights begin at and move by naive Bayes ratios; idf: rare features move more; "
        "auto: by held-out texts",
    )
    dimension: int = Field(
        -1,
        ge=-1,
        le=4096,
        description="of vectors; 0: a weight for each label; -1: 0 up to 100 labels, else 64",
    )
    buckets: int = Field(
        0, ge=0, le=1 << _LAST_BUCKETS, description="of hashed features, a power of two; 0: by the data"
    )
    epochs: int = Field(
        0, ge=0, le=10_000, description="passes over the texts; 0: 5 with bayes, with vectors 25, else 10"
    )
    rate: float = Field(
        0.0,
        ge=0,
        le=100,
        description="learning rate, falling linearly to 0; 0: 1 with bayes or vectors, 24 with idf of words "
        "alone, else 8",
    )

    @model_validator(mode="after")
    def _has_features(self) -> LinearSettings:
        if self.word_ngrams == 0 and self.max_n == 0:
            raise ValueError(
                "'word_ngrams' and 'max_n' are both 0, so that there are no features; set one of them"
            )
        if 0 < self.max_n < self.min_n:
            raise ValueError(
                f"'max_n' is {self.max_n}, below 'min_n' {self.min_n}; set it to 0 or at least that"
            )
        if self.buckets & (self.buckets - 1):
            raise ValueError(f"'buckets' is {self.buckets}; it must be a power of two, or 0")
        return self


@dataclass(frozen=True)
class _Way:
    """One choice of what may be left open."""

    word_ngrams: int
    min_n: int
    max_n: int
    scaling: str

    def __str__(self) -> str:
        parts = [f"words up to {self.word_ngrams}"] if self.word_ngrams else []
        parts += [f"characters {self.min_n} to {self.max_n}"] if self.max_n else []
        return " and ".join(parts) + _SCALED[self.scaling]

    @property
    def work(self) -> float:
        """Return the features of a word, roughly: it begins about four n-grams of characters of a length."""
        return self.word_ngrams + 4.0 * (self.max_n - self.min_n + 1 if self.max_n else 0)


@dataclass
class LinearClassifier:
    """A table of features, and a linear layer where features have vectors."""

    vocabulary: ClassVocabulary
    way: _Way
    rows_FD: Array  # for each feature a weight for each label, or a vector
    weights_KD: Array | None  # the linear layer
    bias_K: Array
    calibration: Calibration = field(default_factory=Calibration)
    held_out_logits: Logits | None = None  # of held-out texts, before they were learned from
    is_probability = True

    @property
    def parameters(self) -> int:
        """Return the number of learned weights."""
        layer = 0 if self.weights_KD is None else self.weights_KD.size
        return int(self.rows_FD.size + layer + self.bias_K.size)

    def logits(self, texts: list[str]) -> Logits:
        """Return the scores of texts."""
        from nextword.models.linear_kernels import summed

        found_NK = np.empty((len(texts), len(self.bias_K)), np.float32)
        for start in range(0, len(texts), _CHUNK):
            made = _buckets_of(texts[start : start + _CHUNK], self.way, len(self.rows_FD))
            power = 0.5 if self.weights_KD is None else 1.0
            z_ND = summed(made.values, made.bounds, self.rows_FD, power)
            z_NK = z_ND if self.weights_KD is None else z_ND @ self.weights_KD.T
            found_NK[start : start + len(z_NK)] = z_NK + self.bias_K
        return found_NK


def _buckets_of(texts: list[str], way: _Way, size: int) -> Hashes:
    return buckets(features(texts, way.word_ngrams, way.min_n, way.max_n), size)


class LinearFamily:
    """Linear classifiers of hashed n-grams."""

    name = "linear"
    task = "classify"
    Settings = LinearSettings
    Training = TrainSettings
    defaults: Mapping[str, Any] = {}
    default_tokenizer = ""
    holds_text = False
    measures = True

    def fit(self, data: LabelledData, settings: Any, budget: Budget) -> Iterator[Event]:
        """Fit what the settings leave open in each way, and keep the best."""
        own: LinearSettings = settings.model
        vocabulary = data.vocabulary

        def fit(examples: Examples, way: _Way) -> LinearClassifier:
            return learn(examples, vocabulary, own, way, budget.seed)

        ways = _ways(own, len(vocabulary.labels))
        model, logits_NK = yield from fit_best(ways, fit, data, budget.seconds)
        model.held_out_logits = logits_NK
        yield Done(model)

    def estimate(self, settings: LinearSettings, size: int, text: Any) -> Cost:
        """Return what fitting texts of this size in bytes takes."""
        ways = (1 + (settings.max_n < 0)) * (3 if settings.scaling == "auto" else 1)
        seconds = 1.0 + ways * size * (settings.epochs or 5) / 2e7
        return Cost(size // 6, seconds, 200_000_000 + 40 * size, 64_000_000)

    def save(self, model: LinearClassifier, folder: NewRun) -> None:
        """Write the weights and what the features are."""
        folder.write_array(_VECTORS, model.rows_FD)
        folder.write_array(_BIAS, model.bias_K)
        if model.weights_KD is not None:
            folder.write_array(_WEIGHTS, model.weights_KD)
        way = model.way
        facts = {
            "word_ngrams": way.word_ngrams, "min_n": way.min_n, "max_n": way.max_n, "scaling": way.scaling,
            "buckets": len(model.rows_FD),
            "dimension": 0 if model.weights_KD is None else model.rows_FD.shape[1],
        }  # fmt: skip
        folder.write_json(_FACTS, facts)
        model.calibration.save(folder)

    def load(
        self, folder: RunFolder, settings: LinearSettings, vocabulary: ClassVocabulary
    ) -> LinearClassifier:
        """Read the arrays, which must fit the labels and the facts."""
        try:
            facts = folder.read_json(_FACTS)
            way = _Way(
                int(facts["word_ngrams"]), int(facts["min_n"]), int(facts["max_n"]), str(facts["scaling"])
            )
            size, width = int(facts["buckets"]), int(facts["dimension"])
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(f"{folder.path / _FACTS} is damaged ({error}); train the run again") from error
        is_sound = 0 <= way.max_n <= 20 and 0 <= way.word_ngrams <= 8 and way.min_n >= 1 and width >= 0
        is_sound = is_sound and way.scaling in _SCALED
        if not is_sound or size < 1 or size & (size - 1):
            raise DamagedError(f"{folder.path / _FACTS} does not describe the arrays; train the run again")
        labels = len(vocabulary.labels)
        rows_FD = load_array(folder, _VECTORS, np.float32, (size, width or labels))
        weights_KD = load_array(folder, _WEIGHTS, np.float32, (labels, width)) if width else None
        bias_K = load_array(folder, _BIAS, np.float32, (labels,))
        return LinearClassifier(vocabulary, way, rows_FD, weights_KD, bias_K, Calibration.load(folder))


def _ways(settings: LinearSettings, labels: int) -> list[_Way]:
    """Return what is tried: what the settings leave open."""
    longest = [settings.max_n] if settings.max_n >= 0 else [0, max(settings.min_n, _OF_CHARACTERS)]
    scalings = [settings.scaling] if settings.scaling != "auto" else ["bayes", "idf", "none"]
    if _dimension(settings, labels):
        scalings = ["none"]
    if settings.word_ngrams == 0:
        longest = [each for each in longest if each]
    return [
        _Way(settings.word_ngrams, settings.min_n, each, scaling) for each in longest for scaling in scalings
    ]


def _dimension(settings: LinearSettings, labels: int) -> int:
    return settings.dimension if settings.dimension >= 0 else 0 if labels <= _FEW else 64


def learn(
    examples: Examples, vocabulary: ClassVocabulary, settings: LinearSettings, way: _Way, seed: int
) -> LinearClassifier:
    """Learn the weights; they follow from the texts, the settings and the seed."""
    from nextword.models import linear_kernels as kernels

    labels, dimension = examples.count, _dimension(settings, examples.count)
    hashes = features(examples.texts, way.word_ngrams, way.min_n, way.max_n)
    size = settings.buckets or _size(hashes, dimension or labels)
    made = buckets(hashes, size)
    prior_K = examples.priors()
    bias_K = np.log(prior_K / (1 - prior_K)) if examples.several else np.log(prior_K)
    bias_K = bias_K.astype(np.float32)
    draw = np.random.default_rng(seed)
    epochs, rate = _steps(settings, way, dimension)
    data = (made.values, made.bounds, examples.labels, examples.bounds)
    if dimension:
        rows_FD = draw.uniform(-1 / dimension, 1 / dimension, (size, dimension)).astype(np.float32)
        weights_KD = np.zeros((labels, dimension), np.float32)
        table: tuple[Array, Array] = (rows_FD, weights_KD)
        step: Any = kernels.learn_vectors
    else:
        rows_FD, steps_FK = _first_weights(made, examples, size, way.scaling)
        weights_KD, table, step = None, (rows_FD, steps_FK), kernels.learn_weights
    for epoch in range(epochs):
        order = draw.permutation(len(examples.texts))
        rates = (rate * (1 - epoch / epochs), rate * (1 - (epoch + 1) / epochs))
        step(*data, order, *table, bias_K, rates, examples.several)
    return LinearClassifier(vocabulary, way, rows_FD, weights_KD, bias_K)


def _steps(settings: LinearSettings, way: _Way, dimension: int) -> tuple[int, float]:
    """Return the epochs and the rate: weights that begin at 0 have further to go than at naive Bayes."""
    if dimension or way.scaling == "bayes":
        epochs, rate = 25 if dimension else 5, 1.0
    else:
        epochs, rate = 10, 24.0 if way.scaling == "idf" and not way.max_n else 8.0
    return settings.epochs or epochs, settings.rate or rate


def _size(hashes: Hashes, width: int) -> int:
    """Return how many buckets there are: at least two for each feature, as far as memory allows."""
    distinct = max(1, about_distinct(hashes))
    most = max(_FIRST_BUCKETS, min(_LAST_BUCKETS, (_MOST // width).bit_length() - 1))
    return int(1 << min(most, max(_FIRST_BUCKETS, (2 * distinct - 1).bit_length())))


def _first_weights(made: Hashes, examples: Examples, size: int, scaling: str) -> tuple[Array, Array]:
    """Return the weights to begin with, and the size of the steps of each.

    bayes: w = u r with the log-count ratios r = log p(f | k) - log p(f | not k): a gradient step of u moves w
    by r². idf: likewise w = u s with s = 1 + log (N + 1) / (n + 1) for a feature of n of N texts; s² is 1 in
    the mean over all features of all texts, so that the rate is that of weights without a scale.
    """
    from nextword.models.linear_kernels import count

    counts_FK = np.zeros((size, examples.count), np.float32)
    if scaling == "none":
        return counts_FK, np.zeros((0, 0), np.float32)
    if scaling == "idf":
        texts_F = np.bincount(made.values, minlength=size)
        squares_F = (1 + np.log((len(examples.texts) + 1) / (texts_F + 1))) ** 2
        squares_F *= len(made.values) / max(1.0, float(squares_F @ texts_F))
        return counts_FK, squares_F[:, None].astype(np.float32)
    count(made.values, made.bounds, examples.labels, examples.bounds, counts_FK)
    if examples.several:
        all_F1 = np.bincount(made.values, minlength=size).astype(np.float32)[:, None]
    else:
        all_F1 = counts_FK.sum(axis=1, keepdims=True)
    with_FK, without_FK = counts_FK + 1, all_F1 - counts_FK + 1
    ratios_FK = np.log(with_FK / with_FK.sum(axis=0)) - np.log(without_FK / without_FK.sum(axis=0))
    return (_START * ratios_FK).astype(np.float32), (ratios_FK**2).astype(np.float32)


FAMILY = LinearFamily()
