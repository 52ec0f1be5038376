"""Sizes that follow from the minutes and the text: how much to read, subwords, batch size, dropout.

Everything here is a pure function of numbers, so that a plan can be computed again; the measurements behind
the constants are in docs/auto.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from nextword.text.subwords import default_size

READ_SHARE = 0.15  # of the time, for reading and tokenizing the text
_LEARNED_PER_SECOND = 60_000  # bytes that subwords are learned from, per second available
_BYTES_PER_SECOND = {"bpe": 2.0e6, "unigram": 1.5e6, "words": 2.0e7, "characters": 1.5e7, "bytes": 5.0e7}
LEARNED = ("bpe", "unigram")  # tokenizers whose vocabulary size is chosen
_LEAST = 1_000_000  # bytes that are always read
_SMALL = 3_000_000  # bytes: up to this size, characters may predict better than subwords
_TRYING = 20.0  # seconds: with less there is no time to try both

TOKENS_PER_WEIGHT = 2.5  # a size is chosen if there are this many tokens for each inner weight
STEPS = 600  # updates there should be, at least, if batches can be made smaller
_FEWEST, _MOST = 512, 8192  # positions of a batch
LARGE_VOCABULARY = 12_000  # from this size on, rare tokens are predicted in clusters


def readable(seconds: float, tokenizer: str) -> int:
    """Return how many bytes of text can be read in the time; there is no time to train on more."""
    rate = _BYTES_PER_SECOND.get(tokenizer, min(_BYTES_PER_SECOND.values()))
    return max(_LEAST, int(READ_SHARE * seconds * rate))


def vocabulary(size: int, seconds: float) -> int:
    """Choose the number of subwords for a text of this size; fewer for little time: each slows every step."""
    most = 1024 if seconds < 40 else 2048 if seconds < 150 else 4096 if seconds < 1200 else 32_768
    return min(default_size(size), most)


def learned_bytes(seconds: float) -> int:
    """Return how many bytes the subwords are learned from."""
    return max(_LEAST, int(_LEARNED_PER_SECOND * seconds))


def tokenizers(size: int | None, seconds: float | None) -> tuple[str, ...]:
    """List the tokenizers to try on a text of this size; none if subwords are known to be best."""
    is_small = size is not None and size <= _SMALL
    return ("characters", "bpe") if is_small and seconds is not None and seconds >= _TRYING else ()


def order(tokenizer: str, size: int) -> int | None:
    """Choose the order of an n-gram over characters; for words and subwords the family's default is used."""
    return (8 if size <= _SMALL else 10) if tokenizer in ("characters", "bytes") else None


def is_enough(tokens: float, weights: int) -> bool:
    """Return whether there are enough tokens to train this many inner weights."""
    return tokens >= TOKENS_PER_WEIGHT * weights


@dataclass(frozen=True)
class Shape:
    """Rows and positions of a batch."""

    batch: int
    length: int


def batch_shape(tokens: float, length: int) -> Shape:
    """Choose batches small enough for the number of steps wanted, with rows of this many positions."""
    positions = min(_MOST, max(_FEWEST, tokens / STEPS))
    rows = max(4, 2 ** round(positions / length).bit_length() // 2)
    return Shape(min(rows, 128), length)


def dropout(epochs: float) -> float:
    """Choose the dropout: more passes over the same text need more, or the model overfits."""
    for limit, share in ((3.0, 0.0), (8.0, 0.1), (20.0, 0.2)):
        if epochs <= limit:
            return share
    return 0.3


def head(vocab_size: int) -> str:
    """Choose the output layer for a vocabulary."""
    return "adaptive" if vocab_size >= LARGE_VOCABULARY else "softmax"


@dataclass(frozen=True)
class LabelledSizes:
    """Sizes for labelled examples, which are few and read many times."""

    batches: int = 60  # of an epoch, at least, if batches can be made smaller
    share: float = 0.6  # of the useful epochs: a size that has not the time for this many is too large
    updates: int = 1_500  # at least, so that few examples are read more often
    most: float = 60.0  # epochs: more do not help, however few the examples
    patience: int = 4  # measurements, of ten

    def batch(self, examples: float, most: int) -> int:
        """Choose the rows of a batch: small where there are few examples, so that an epoch has some steps."""
        rows = max(1, int(examples / self.batches))
        return min(most, max(4, 1 << (rows.bit_length() - 1)))

    def epochs(self, epochs: float, steps: float) -> float:
        """Return the epochs, of this many steps each, that are useful: the family's, or more if few."""
        return max(epochs, min(self.most, self.updates / max(steps, 1e-9)))


LABELLED = LabelledSizes()


@dataclass(frozen=True)
class TranslatedSizes:
    """Sizes for pairs of texts."""

    rows: float = 0.2  # of a batch, for each square root of the pairs that are read in all
    batches: int = 100  # of an epoch, at least
    passes: float = 7.0  # over the pairs: with less time a size is too large
    tokens_per_weight: float = 3.0  # or this many target tokens for each inner weight, where pairs are many
    weights_per_token: float = 10.0  # inner weights for each target token of the pairs, at most
    useful: float = 60.0  # epochs: more do not help
    updates: int = 4_000  # at least, so that few pairs are read more often
    fewest_rows: int = 16
    most_rows: int = 256

    def is_enough(self, tokens: float, epoch: int, weights: int) -> bool:
        """Return whether there are time and pairs enough for this many weights."""
        has_time = tokens >= min(self.passes * epoch, self.tokens_per_weight * float(weights))
        return has_time and weights <= self.weights_per_token * epoch

    def batch(self, read: float, epoch: int, length: float = 1.0) -> int:
        """Choose the rows of a batch, a multiple of 8, for pairs as long as ``length`` rows each.

        The more pairs are read, the larger the batches that still learn as much from each pair.
        """
        rows = max(self.fewest_rows, min(self.rows * read**0.5, epoch / self.batches))
        return int(min(self.most_rows, rows * max(1.0, length))) // 8 * 8

    def epochs(self, steps: float) -> float:
        """Return the epochs, of this many steps each, that are useful."""
        return max(self.useful, self.updates / max(steps, 1e-9))

    def dropout(self, epochs: float) -> float:
        """Choose the dropout: more passes over the same pairs need more."""
        return next((share for limit, share in ((6.0, 0.1), (15.0, 0.2)) if epochs <= limit), 0.3)

    def subwords(self, size: int, seconds: float | None) -> int:
        """Choose the number of subwords: half as many again as for one text; fewer for little time."""
        most = 4096 if seconds is not None and seconds < 240 else 32_768
        return min(3 * size // 2, most)


TRANSLATED = TranslatedSizes()
ONLY_LANGUAGE = frozenset(f"train.{name}" for name in ("length", "batches", "bptt", "unigram"))
COMPARED = 0.2  # of labelled examples: measured by `compare` where no others are named
