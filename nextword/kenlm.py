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
from collections.abc import Iterable, Iterator
from functools import total_ordering
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nextword.core.contracts import END, SPECIALS, START, UNKNOWN, Block, PackedScorer
from nextword.core.errors import DamagedError, NextwordError, RunError
from nextword.formats.arpa.files import read_arpa
from nextword.formats.walk import Context, ContractWalk, TrieWalk, Walk
from nextword.ngram.model import NgramModel
from nextword.text.vocab import FIRST_WORD, Vocabulary, escape
from nextword.text.words import WordTokenizer

if TYPE_CHECKING:
    from nextword.formats.calls import Calls
    from nextword.ngram.fast.index import Index

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

Text = str | bytes
Array = np.ndarray[Any, np.dtype[Any]]
_LN10 = float(np.log(10.0))
PLAIN_LETTERS = 300_000  # text scored before the compiled scorer is loaded
_REMEMBERED = 100_000  # words whose ids `BaseScore` remembers
_NOT_PLAIN = (*(name.encode() for name in SPECIALS), b"\r", b"\0", b"\v", b"\f")
OTHER_MODEL = "this State belongs to another model; call BeginSentenceWrite of this one first"
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


@total_ordering
class State:
    """What a model remembers of the preceding words: only as many as can still matter.

    Two states are equal if every continuation has the same probability after both. States can be compared,
    hashed and copied. A new one is empty: `Model.BeginSentenceWrite` or `NullContextWrite` sets it.
    """

    __slots__ = ("_at", "_block", "_calls", "_context", "_known")
    _context: Context | None  # in plain Python
    _calls: Calls | None  # in compiled code: whose; then its address and block, and its words once asked for
    _at: int
    _block: Any
    _known: tuple[int, ...] | None

    def __init__(self) -> None:
        self._calls = self._context = None

    def _words(self) -> tuple[int, ...]:
        if self._calls is None:
            return () if self._context is None else self._context.words
        if self._known is None:
            self._known = self._calls.words((self._at, self._block))
        return self._known

    def _be(self, context: Context | None) -> None:
        self._context, self._calls = context, None

    def _be_compiled(self, calls: Calls, place: tuple[int, Any], known: tuple[int, ...] | None) -> None:
        """Become a copy of the context at a place."""
        if self._calls is not calls:
            self._calls = calls
            self._at, self._block = next(calls.rows, None) or calls.place()
        calls.copy(place[0], self._at)
        self._known = known

    def __eq__(self, other: object) -> bool:
        return self._words() == other._words() if isinstance(other, State) else NotImplemented

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        mine, others = self._words(), other._words()
        return (len(mine), mine) < (len(others), others)

    def __hash__(self) -> int:
        return hash(self._words())

    def __copy__(self) -> State:
        copied = State()
        copied._context = self._context
        if self._calls is not None:
            copied._be_compiled(self._calls, (self._at, self._block), self._known)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> State:
        return self.__copy__()


class Model:
    """A language model from an ARPA file (plain or gzipped), a run's folder, or a run's name."""

    __slots__ = (
        "_begin", "_calls", "_earlier", "_index", "_model", "_null", "_plain_left", "_seen", "_vocabulary",
        "_walk", "path",
    )  # fmt: skip

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
        self._begin, self._null = self._walk.begin(), self._walk.null()
        self._plain_left = PLAIN_LETTERS
        self._seen: dict[Text, int] = {}  # words that `BaseScore` was asked for
        self._calls: Calls | None = None
        self._earlier: list[Calls] = []  # what made states that still may be used
        reads = (LoadMethod.READ, LoadMethod.PARALLEL_READ)
        if config is not None and config.load_method in reads and isinstance(self._model, NgramModel):
            self._compile(self._model.populate())

    def _compile(self, index: Index | None = None, worthwhile: bool = True) -> None:
        """Let compiled code take over; with ``index`` it looks n-grams up in memory.

        Without, the trie is searched until half as many words are read as there are n-grams; then putting
        these into memory is worthwhile, if there is room.
        """
        if isinstance(self._walk, TrieWalk):
            shown = [word for word, found in self._index.items() if found >= FIRST_WORD]
            left = sum(self._model.trie.sizes) // 2 if worthwhile else 2**62
            self._calls = self._walk.compiled(shown, index, left)

    def _recover(self) -> None:
        """Find out why a compiled call failed: load all n-grams into memory if it is time, or raise."""
        assert self._calls is not None
        if not self._calls.is_used_up:
            raise DamagedError("the offsets of the n-gram arrays point outside them; train the run again")
        from nextword.ngram.fast import index, scoring  # compiled

        self._earlier.append(self._calls)
        fits = 3 * index.bytes_needed(self._model.trie) < scoring.free_memory()
        self._compile(self._model.populate() if fits else None, worthwhile=False)

    def _count(self, letters: int) -> None:
        """Count what is read in plain Python: much of it is worth the compiled scorer."""
        self._plain_left -= letters
        if self._plain_left <= 0 and self._calls is None:
            self._compile()

    @property
    def order(self) -> int:
        """The length of the longest n-gram."""
        return self._walk.order

    def score(self, sentence: Text, bos: bool = True, eos: bool = True) -> float:
        """Return log10 p of a sentence; ``bos``: it starts here; ``eos``: ``</s>`` is predicted after it."""
        data = sentence.encode() if type(sentence) is str else _as_bytes(sentence)
        calls = self._calls
        if calls is not None:
            total = calls.score(calls.head, data, bos is True or bool(bos), eos is True or bool(eos))
            if total != total:
                self._recover()
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
        packed = self._packed([_as_bytes(sentence) for sentence in listed])
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
        words = len(_as_bytes(sentence).split()) + 1
        return float(10.0 ** (-self.score(sentence) / words))

    def full_scores(
        self, sentence: Text, bos: bool = True, eos: bool = True
    ) -> Iterator[tuple[float, int, bool]]:
        """Yield for each word: log10 p, the length of its n-gram, and whether the word is unknown."""
        data = _as_bytes(sentence)
        if self._calls is not None:
            found = self._calls.full_scores(data, bool(bos), bool(eos))
            if found is None:
                self._recover()
                return self.full_scores(sentence, bos, eos)
            return found
        if isinstance(self._walk, ContractWalk):
            return self._at_once(data, bos, eos)
        return self._by_steps(data, bos, eos)

    def _by_steps(self, data: bytes, bos: bool, eos: bool) -> Iterator[tuple[float, int, bool]]:
        """Yield `full_scores` in plain Python."""
        context = self._begin if bos else self._null
        self._count(len(data))
        for index in self._ids(data, eos):
            log10, length, context = self._step(context, index)
            yield log10, length, index == UNKNOWN

    def _at_once(self, data: bytes, bos: bool, eos: bool) -> Iterator[tuple[float, int, bool]]:
        """Compute `full_scores` for a model that reads a whole sentence in one call."""
        assert isinstance(self._walk, ContractWalk)
        ids = self._ids(data, eos)
        for at, log10 in enumerate(self._walk.log10(ids, bool(bos)).tolist()):
            yield log10, self._walk.length(at + bool(bos)), ids[at] == UNKNOWN

    def BeginSentenceWrite(self, state: State) -> None:  # noqa: N802 - KenLM's name
        """Set the state to the start of a sentence."""
        if self._calls is None:
            state._be(self._begin)
        else:
            state._be_compiled(self._calls, self._calls.start, self._begin.words)

    def NullContextWrite(self, state: State) -> None:  # noqa: N802 - KenLM's name
        """Set the state to an empty context."""
        if self._calls is None:
            state._be(self._null)
        else:
            state._be_compiled(self._calls, self._calls.null, ())

    def BaseScore(self, in_state: State, word: Text, out_state: State) -> float:  # noqa: N802 - KenLM's name
        """Return log10 p of a word after a state; ``out_state`` becomes the state after the word."""
        calls = self._calls
        if calls is None:
            return self._plain_step(in_state, word, out_state)[0]
        index = self._seen.get(word)
        if index is None:
            index = self._see(word)
        if in_state._calls is not calls:
            self._convert(in_state, calls)
        if out_state._calls is not calls:
            out_state._calls = calls
            out_state._at, out_state._block = next(calls.rows, None) or calls.place()
        log10 = calls.step(in_state._at, index, out_state._at)
        out_state._known = None
        if log10 != log10:
            self._recover()
            return self.BaseScore(in_state, word, out_state)
        return log10  # type: ignore[no-any-return]

    def _see(self, word: Text) -> int:
        """Return the id of a word, and remember it as it is given, within bounds."""
        index = self.vocab_index(word)
        if len(self._seen) >= _REMEMBERED:
            self._seen.clear()
        self._seen[word] = index
        return index

    def BaseFullScore(  # noqa: N802 - KenLM's name
        self, in_state: State, word: Text, out_state: State
    ) -> FullScoreReturn:
        """Call `BaseScore`, with the length of the n-gram and whether the word is unknown."""
        if self._calls is None:
            return FullScoreReturn(*self._plain_step(in_state, word, out_state))
        log10 = self.BaseScore(in_state, word, out_state)
        return FullScoreReturn(log10, *self._calls.last((out_state._at, out_state._block)))

    def _plain_step(self, in_state: State, word: Text, out_state: State) -> tuple[float, int, bool]:
        """Read a word in plain Python; return log10 p, the n-gram's length, whether the word is unknown."""
        data = _as_bytes(word)
        index = self._index.get(data, UNKNOWN)
        log10, length, context = self._step(self._own(in_state), index)
        out_state._be(context)
        self._count(len(data))
        return log10, length, index == UNKNOWN

    def _convert(self, state: State, calls: Calls) -> None:
        """Let a state that was made before this code took over, or is empty, be one of it."""
        words = state._words()
        if state._calls is None:
            self._own(state)
        elif state._calls not in self._earlier:
            raise ValueError(OTHER_MODEL)
        place = calls.start if words == self._begin.words else calls.read(words[::-1])
        state._be_compiled(calls, place, words)

    def vocab_index(self, word: Text) -> int:
        """Return the id of a word; 0 if it is unknown."""
        return self._index.get(_as_bytes(word), UNKNOWN)

    def __contains__(self, word: Text) -> bool:
        return self.vocab_index(word) != UNKNOWN

    def __repr__(self) -> str:
        return f"<Model from {os.path.basename(self.path)!r}>"

    def __reduce__(self) -> tuple[type[Model], tuple[bytes]]:
        return (type(self), (self.path,))

    def _step(self, context: Context, index: int) -> tuple[float, int, Context]:
        return context.steps.get(index) or self._walk.advance(context, index)

    def _own(self, state: State) -> Context:
        if state._calls is not None:
            raise ValueError(OTHER_MODEL)
        if state._context is None:
            return self._null
        if state._context.walk is not self._walk:
            raise ValueError(OTHER_MODEL)
        return state._context


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


def _as_bytes(text: Text) -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8")
    if isinstance(text, bytes):
        return bytes(text)
    raise TypeError(f"Cannot convert {type(text)} to string")
