"""Pairs as ids, and what a translation run knows: its tokenizers, and what both languages look like."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import Field

from nextword.core.contracts import END, START, UNKNOWN, Block, Cached, PieceTokenizer, Tokenizer, never_next
from nextword.core.events import Event, Note, Stage
from nextword.data.batches.batch import Ints
from nextword.data.batches.pairs import PairSequences, Sequences
from nextword.data.encode import packed_key
from nextword.data.languages import Language
from nextword.data.packed import packed
from nextword.data.pairs import Pair, PairDataSettings
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

NO_LANGUAGE = Language()
_MANY = 0.2  # of the pairs: where more are too long, a note says how to keep them


class PairTextSettings(TextSettings):
    """How both sides become ids."""

    joint: bool = Field(True, description="one vocabulary for source and target; false: one for each")


@dataclass(frozen=True)
class PairVocabulary:
    """The tokenizers of both sides (one object where they are joint), and what the sides look like."""

    source: Tokenizer
    target: Tokenizer
    source_language: Language = NO_LANGUAGE
    target_language: Language = NO_LANGUAGE

    @property
    def joint(self) -> bool:
        """Tell whether both sides have one vocabulary."""
        return self.source is self.target

    @property
    def vocab_size(self) -> int:
        """Return how many different tokens can be written."""
        return self.target.vocab_size


def same_tokens(vocabulary: PairVocabulary) -> list[int]:
    """Return the target's id of each token of the source; -1 where it has none, or is never written."""
    source, target = vocabulary.source, vocabulary.target
    found = list(range(source.vocab_size))
    if not vocabulary.joint:
        specials = [UNKNOWN, START, END]
        known = {_content(target, index): index for index in range(len(specials), target.vocab_size)}
        found = specials + [known.get(_content(source, index), -1) for index in found[len(specials) :]]
    never = never_next(target.closed)
    return [-1 if index in never else index for index in found]


def _content(tokenizer: Tokenizer, index: int) -> bytes | str:
    return tokenizer.data(index) if isinstance(tokenizer, PieceTokenizer) else tokenizer.piece(index)


def fit_vocabulary(pairs: Sequence[Pair], settings: PairTextSettings) -> PairVocabulary:
    """Learn or load the tokenizers from the training pairs."""
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if settings.joint:
        both = [text for pair in pairs for text in (pair.source, pair.target)]
        source = target = fit_tokenizer(settings.tokenizer, _blocks(both), settings, "document")
    else:
        source, target = (
            fit_tokenizer(settings.tokenizer, _blocks(side), settings, "document")
            for side in (sources, targets)
        )
    return PairVocabulary(source, target, Language.of(sources), Language.of(targets))


def encode_side(texts: Sequence[str], tokenizer: Tokenizer) -> Sequences:
    """Return the ids of texts; where making them is slow, they are kept and found again by content."""
    if not isinstance(tokenizer, Cached):
        return Sequences(_joined(tokenizer, texts))
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    key = packed_key(f"pairs {digest.hexdigest()}", tokenizer)
    return Sequences(packed(key, lambda: tokenizer.encode_blocks(_blocks(texts))).ids)


def encode_sources(texts: Sequence[str], tokenizer: Tokenizer) -> Sequences:
    """Return the ids of texts that are translated now; nothing is kept."""
    return Sequences(_joined(tokenizer, texts))


def encode_now(pairs: Sequence[Pair], vocabulary: PairVocabulary) -> PairSequences:
    """Return the ids of pairs that are scored now; nothing is kept."""
    return PairSequences(
        encode_sources([pair.source for pair in pairs], vocabulary.source),
        encode_sources([pair.target for pair in pairs], vocabulary.target),
    )


@dataclass(frozen=True)
class PairExamples:
    """Pairs as text and as ids."""

    sources: Sequence[str]
    targets: Sequence[str]
    ids: PairSequences

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def tokens(self) -> int:
        """Return how many target tokens there are, END included."""
        return int(self.ids.target.lengths_N.sum())

    @property
    def positions(self) -> float:
        """Return the tokens of source and target of a pair, on average."""
        return (int(self.ids.source.lengths_N.sum()) + self.tokens) / max(1, len(self))

    def keep(self, rows_N: Ints) -> PairExamples:
        """Return some of the pairs."""
        rows = rows_N.tolist()
        return PairExamples(
            [self.sources[row] for row in rows], [self.targets[row] for row in rows],
            PairSequences(self.ids.source.keep(rows_N), self.ids.target.keep(rows_N)),
        )  # fmt: skip


def encode_pairs(pairs: Sequence[Pair], vocabulary: PairVocabulary) -> PairExamples:
    """Turn pairs into ids."""
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    ids = PairSequences(encode_side(sources, vocabulary.source), encode_side(targets, vocabulary.target))
    return PairExamples(sources, targets, ids)


def within_length(examples: PairExamples, data: PairDataSettings) -> Generator[Event, None, PairExamples]:
    """Leave out pairs that are too long, or cut their ends off; say how many they are."""
    source_N, target_N = examples.ids.source.lengths_N, examples.ids.target.lengths_N
    long_N = np.maximum(source_N, target_N) > data.longest
    count = int(long_N.sum())
    if not count:
        return examples
    if data.too_long == "cut":
        yield Note(f"{count:,} pairs are longer than {data.longest} tokens, and were cut there")
        cut = PairSequences(examples.ids.source.cut(data.longest), examples.ids.target.cut(data.longest))
        return replace(examples, ids=cut)
    hint = "; --set data.too_long=cut keeps them" if count > _MANY * len(examples) else ""
    are, were = ("is", "was") if count == 1 else ("are", "were")
    yield Note(
        f"{count:,} of {len(examples):,} pairs {are} longer than {data.longest} tokens (data.longest), and "
        f"{were} left out{hint}"
    )
    return examples.keep(np.flatnonzero(~long_N))


def shortened(sources: Sequences, data: PairDataSettings) -> Sequences:
    """Return sources as training saw them: without their ends where those were cut off."""
    return sources.cut(data.longest) if data.too_long == "cut" else sources


def measured_pairs(pairs: Sequence[Pair], vocabulary: PairVocabulary, data: PairDataSettings) -> PairExamples:
    """Turn pairs into ids whose sources are as long as training saw them; targets are whole."""
    made = encode_pairs(pairs, vocabulary)
    return replace(made, ids=PairSequences(shortened(made.ids.source, data), made.ids.target))


def prepared_pairs(
    learned: Sequence[Pair],
    measured: Sequence[Pair],
    settings: PairTextSettings,
    known: PairVocabulary | None,
    data: PairDataSettings,
) -> Generator[Event, None, tuple[PairVocabulary, PairExamples, PairExamples | None]]:
    """Learn the tokenizers, unless they are known, and encode what is learned and what is measured."""
    if known is None:
        yield Stage("learn the tokenizer")
    vocabulary = known or fit_vocabulary(learned, settings)
    yield Stage("encode")
    held = measured_pairs(measured, vocabulary, data) if measured else None
    return vocabulary, encode_pairs(learned, vocabulary), held


def _blocks(texts: Iterable[str]) -> Iterable[Block]:
    return (Block(text.encode("utf-8", "surrogatepass"), True) for text in texts)


def _joined(tokenizer: Tokenizer, texts: Sequence[str]) -> Any:
    parts = [piece.ids for piece in tokenizer.encode_blocks(_blocks(texts))]
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)
