"""A drop-in replacement for the ``kenlm`` module: its scripts work with any nextword run or ARPA file.

``import nextword.kenlm as kenlm``. The names and the meaning of every call are those of KenLM's Python
module (Heafield 2011); the code is our own. All logarithms are to base 10. In addition, `Model` accepts a
run's folder or name, `Model.score_many` scores a list of sentences at once, `Model.vocab_index` returns a
word's id, and errors are both `OSError`, as in KenLM, and `NextwordError`.

Sentences are scored in plain Python at first, so that loading is fast, and results are cached within
bounds; after some hundred kilobytes of text, or from the start with `LoadMethod.READ`, compiled code takes
over, one call a sentence or word. KenLM's own binary files cannot be read: give the ARPA file they were
built from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nextword.core.contracts import END, SPECIALS, START, UNKNOWN, Block, PackedScorer
from nextword.core.errors import NextwordError, RunError
from nextword.formats.arpa.files import read_arpa
from nextword.formats.state import State, last
from nextword.formats.steps import Steps, Text, as_bytes
from nextword.formats.walk import ContractWalk, TrieWalk, Walk
from nextword.ngram.model import NgramModel
from nextword.text.vocab import FIRST_WORD, Vocabulary, escape
from nextword.text.words import WordTokenizer

__all__ = [
    "ARPALoadComplain",
    "Config",
    "FullScoreReturn",
    "LanguageModel",
    "LoadMethod",
    "Model",
    "ModelError",
    "State",
]

Array = np.ndarray[Any, np.dtype[Any]]
_LN10 = float(np.log(10.0))
PLAIN_LETTERS = 300_000  # text scored before the compiled scorer is loaded
_NOT_PLAIN = (*(name.encode() for name in SPECIALS), b"\r", b"\0", b"\v", b"\f")
_MISSING_UNKNOWN = -100.0  # KenLM's log10 p of an unknown word where the file has no <unk>


class ModelError(RunError, OSError):
    """The model cannot be read; `except OSError` catches it, as with KenLM."""


class LoadMethod:
    """How to load the model: READ and PARALLEL_READ load all n-grams of a run into memory at once.

    The others memory-map the files; all n-grams are loaded once enough text is scored.
    """

    LAZY = 0
    POPULATE_OR_LAZY = 1
    POPULATE_OR_READ = 2
    READ = 3
    PARALLEL_READ = 4


class ARPALoadComplain:
    """How verbosely KenLM complains about ARPA files; accepted and ignored, since nothing is printed."""

    ALL = 0
    EXPENSIVE = 1
    NONE = 2


class Config:
    """Options of `Model`, with KenLM's names."""

    def __init__(self) -> None:
        self.load_method = LoadMethod.POPULATE_OR_READ
        self.show_progress = True
        self.arpa_complain = ARPALoadComplain.ALL


class FullScoreReturn:
    """The result of `Model.BaseFullScore` for one word."""

    __slots__ = ("log_prob", "ngram_length", "oov")

    def __init__(self, log_prob: float, ngram_length: int, oov: bool) -> None:
        self.log_prob, self.ngram_length, self.oov = log_prob, ngram_length, oov

    def __repr__(self) -> str:
        return f"FullScoreReturn({self.log_prob!r}, {self.ngram_length!r}, {self.oov!r})"


class Model:
    """A language model from an ARPA file (plain or gzipped), a run's folder, or a run's name."""

    __slots__ = ("__dict__", "_direct", "_index", "_model", "_steps", "_vocabulary", "_walk", "path")

    def __init__(self, path: Text | os.PathLike[str], config: Config | None = None) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            raise TypeError(f"Cannot convert {type(path)} to string")
        name = os.fsdecode(path)
        try:
            found, self._vocabulary, self._model, self._walk = _load(name)
        except NextwordError as error:
            raise ModelError(f"Cannot read model '{name}' ({error})") from error
        self.path: bytes = os.fsencode(os.path.abspath(found))
        self._index = _shown_index(self._vocabulary)
        self._direct: Callable[[State, Text, State], float] | None = None  # see `_reader`
        self._steps = Steps(self._model, self._walk, self._index, PLAIN_LETTERS)
        reads = (LoadMethod.READ, LoadMethod.PARALLEL_READ)
        if config is not None and config.load_method in reads and isinstance(self._model, NgramModel):
            self._steps.compile(self._model.populate())

    @property
    def order(self) -> int:
        """The length of the longest n-gram."""
        return self._walk.order

    def score(self, sentence: Text, bos: bool = True, eos: bool = True) -> float:
        """Return log10 p of a sentence; ``bos``: it starts here; ``eos``: ``</s>`` is predicted after it."""
        data = sentence.encode() if type(sentence) is str else as_bytes(sentence)
        calls = self._steps.calls
        if calls is not None:
            total = calls.score(calls.head, data, bos is True or bool(bos), eos is True or bool(eos))
            if total != total:
                self._steps.recover()
                return self.score(sentence, bos, eos)
            return total  # type: ignore[no-any-return]
        if isinstance(self._walk, ContractWalk):  # a whole sentence in one call is faster
            return float(self._walk.log10(self._ids(data, eos), bool(bos)).sum())
        return sum([log10 for log10, _, _ in self._by_steps(data, bos, eos)], 0.0)

    def _ids(self, data: bytes, eos: bool) -> list[int]:
        ids = [self._index.get(word, UNKNOWN) for word in data.split()]
        return [*ids, END] if eos else ids

    def score_many(self, sentences: Iterable[Text], bos: bool = True, eos: bool = True) -> list[float]:
        """Call `score` for each sentence; many at once go through the compiled scorer, on all cores."""
        listed = list(sentences)
        if not (bos and eos):
            return [self.score(sentence, bos, eos) for sentence in listed]
        if not listed:
            return []
        packed = self._packed([as_bytes(sentence) for sentence in listed])
        starts = np.flatnonzero(packed == START)
        alone = len(starts) == len(listed)  # no START inside a sentence
        with np.errstate(invalid="ignore"):
            totals = np.add.reduceat(self._logp(packed), starts) / _LN10 if alone else None
        if totals is None:
            return [self.score(sentence) for sentence in listed]
        scores: list[float] = totals.tolist()
        for row in np.flatnonzero(~np.isfinite(totals)).tolist():  # a word without probability: see `score`
            scores[row] = self.score(listed[row])
        return scores

    def _logp(self, packed: Array) -> Array:
        """Return log p of packed ids; sentences are independent."""
        if isinstance(self._model, PackedScorer):
            return np.asarray(self._model.score_packed(packed))
        from nextword.evaluation.lm.streams import ScoreStream

        return ScoreStream(self._model).push(packed)

    def _packed(self, sentences: list[bytes]) -> Array:
        """Pack ``START w … END`` of every sentence; long plain text uses the compiled word scanner."""
        text = b"\n".join(sentences) + b"\n"
        plain = text.count(b"\n") == len(sentences) and not any(part in text for part in _NOT_PLAIN)
        if plain and len(text) >= PLAIN_LETTERS:
            blocks = WordTokenizer(self._vocabulary).encode_blocks([Block(text, True)], threads=2)
            return np.concatenate([encoded.ids for encoded in blocks])
        find = self._index.get
        ids: list[int] = []
        for sentence in sentences:
            ids.append(START)
            ids += [find(word, UNKNOWN) for word in sentence.split()]
            ids.append(END)
        return np.array(ids, dtype=np.int32)

    def perplexity(self, sentence: Text) -> float:
        """Return the perplexity of a sentence, ``</s>`` included; it must not contain ``<s>`` or ``</s>``."""
        words = len(as_bytes(sentence).split()) + 1
        return float(10.0 ** (-self.score(sentence) / words))

    def full_scores(
        self, sentence: Text, bos: bool = True, eos: bool = True
    ) -> Iterator[tuple[float, int, bool]]:
        """Yield for each word: log10 p, the length of its n-gram, and whether the word is unknown."""
        data = as_bytes(sentence)
        if self._steps.calls is not None:
            found = self._steps.calls.full_scores(data, bool(bos), bool(eos))
            if found is None:
                self._steps.recover()
                return self.full_scores(sentence, bos, eos)
            return found
        if isinstance(self._walk, ContractWalk):
            return self._at_once(data, bos, eos)
        return self._by_steps(data, bos, eos)

    def _by_steps(self, data: bytes, bos: bool, eos: bool) -> Iterator[tuple[float, int, bool]]:
        """Yield `full_scores` in plain Python."""
        steps = self._steps
        context = steps.begin if bos else steps.null
        steps.count(len(data))
        for index in self._ids(data, eos):
            log10, length, context = steps.step(context, index)
            yield log10, length, index == UNKNOWN

    def _at_once(self, data: bytes, bos: bool, eos: bool) -> Iterator[tuple[float, int, bool]]:
        """Compute `full_scores` for a model that reads a whole sentence in one call."""
        assert isinstance(self._walk, ContractWalk)
        ids = self._ids(data, eos)
        for at, log10 in enumerate(self._walk.log10(ids, bool(bos)).tolist()):
            yield log10, self._walk.length(at + bool(bos)), ids[at] == UNKNOWN

    def BeginSentenceWrite(self, state: State) -> None:  # noqa: N802 - KenLM's name
        """Set the state to the start of a sentence."""
        self._steps.write(state, True)

    def NullContextWrite(self, state: State) -> None:  # noqa: N802 - KenLM's name
        """Set the state to an empty context."""
        self._steps.write(state, False)

    def BaseScore(self, in_state: State, word: Text, out_state: State) -> float:  # noqa: N802 - KenLM's name
        """Return log10 p of a word after a state; ``out_state`` becomes the state after the word."""
        return self._reader()(in_state, word, out_state)

    def _reader(self) -> Callable[[State, Text, State], float]:
        """Return what reads a word; once it is compiled code, it takes the place of `BaseScore`."""
        if self._direct is None:
            if self._steps.calls is None:
                return self._steps.score
            from nextword.formats.direct_kernels import function

            self._direct = function(self._steps)
            if type(self).BaseScore is Model.BaseScore:
                self.__dict__["BaseScore"] = self._direct
        return self._direct

    def BaseFullScore(  # noqa: N802 - KenLM's name
        self, in_state: State, word: Text, out_state: State
    ) -> FullScoreReturn:
        """Call `BaseScore`, with the length of the n-gram and whether the word is unknown."""
        if self._steps.calls is None:
            return FullScoreReturn(*self._steps.full_score(in_state, word, out_state))
        log10 = self._reader()(in_state, word, out_state)
        return FullScoreReturn(log10, *last(out_state))

    def vocab_index(self, word: Text) -> int:
        """Return the id of a word; 0 if it is unknown."""
        return self._index.get(as_bytes(word), UNKNOWN)

    def __contains__(self, word: Text) -> bool:
        return self.vocab_index(word) != UNKNOWN

    def __repr__(self) -> str:
        return f"<Model from {os.path.basename(self.path)!r}>"

    def __reduce__(self) -> tuple[type[Model], tuple[bytes]]:
        return (type(self), (self.path,))


class LanguageModel(Model):
    """KenLM's older name for `Model`."""

    __slots__ = ()


def _load(name: str) -> tuple[Path, Vocabulary, Any, Walk]:
    path = Path(name)
    if path.is_file() or (not path.exists() and path.name.endswith((".arpa", ".arpa.gz", ".gz"))):
        found = read_arpa(path)
        unknown = _MISSING_UNKNOWN if found.log10_unknown is None else found.log10_unknown
        zeros = {START: found.log10_start, UNKNOWN: unknown}
        model = NgramModel(found.trie, "arpa")
        return path, found.vocabulary, model, TrieWalk(found.trie, zeros)
    from nextword.runs import saved
    from nextword.store.names import resolve

    folder = resolve(name)
    trained = saved.load(folder)
    if not isinstance(trained.tokenizer, WordTokenizer):
        raise RunError(
            f"'{folder}' has the tokenizer '{trained.tokenizer.name}', but this module splits sentences into "
            "words; use a run trained with --tokenizer words, or nextword.load"
        )
    vocabulary = trained.tokenizer.vocab
    if isinstance(trained.model, NgramModel) and trained.model.trie.fallback == "shorter":
        return folder, vocabulary, trained.model, TrieWalk(trained.model.trie)
    return folder, vocabulary, trained.model, ContractWalk(trained.model)


def _shown_index(vocabulary: Vocabulary) -> dict[bytes, int]:
    """Map a word as ARPA files write it to its id: ``<s>`` is START, a literal ``<s>`` has a backslash."""
    index = dict(vocabulary.index)
    names = [name.encode() for name in SPECIALS]
    if any(name in index for name in names):
        index = {escape(word).encode(): i for i, word in enumerate(vocabulary.words, start=FIRST_WORD)}
    index.update(zip(names, (UNKNOWN, START, END), strict=True))
    return index
