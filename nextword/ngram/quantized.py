"""An n-gram model in few bits: 4 to 8 for each probability, and no word ids above order 2.

What KenLM's quantized trie spends on an n-gram, and what is stored here:

- *probability*: the number of a bin. Bins are of the log-odds, so that p near 1 keeps what it leaves.
- *backoff weight*: nothing where a context has one extension (what that leaves is known), otherwise the bin
  of the mass that is left to unseen tokens. Extensions are scaled to the rest, and the weight is computed
  when the model is loaded: every distribution sums to one.
- *word*: whatever follows "c d e" was also seen after "d e", so an n-gram is the how-manyth extension of its
  context without the first token (Pibiri & Venturini 2017). Most such contexts have few extensions: few bits.
- *pointer to the extensions*: their number in unary, one bit an n-gram and one a context.

Loading expands all this into the usual arrays in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nextword.core.errors import DamagedError
from nextword.ngram import bitfields
from nextword.ngram.arrays import Array, Level, Trie
from nextword.ngram.bins import centres, nearest
from nextword.ngram.prune import links
from nextword.ngram.smoothing.estimate import as_offsets, widths

LEAST = 1e-9  # mass that is never rounded to nothing, so that unseen tokens keep some
_NEARLY_NONE = 1e-6  # the shorter context leaves less than this: every token was seen


@dataclass(frozen=True)
class QuantizedTrie:
    """The stored arrays of a trie whose fallback is the shorter context, by name."""

    bits: int
    sizes: tuple[int, ...]  # number of n-grams of each order
    arrays: dict[str, Array]

    @property
    def nbytes(self) -> int:
        """Bytes on disk."""
        return sum(array.nbytes for array in self.arrays.values())

    @classmethod
    def of(cls, trie: Trie, bits: int) -> QuantizedTrie:
        """Quantize the probabilities of a trie; unigrams stay as they are."""
        arrays = {"ngram-1.probs.npy": np.asarray(trie.levels[0].probs)}
        found = links(trie)
        for n in range(2, trie.order + 1):
            context, level = trie.levels[n - 2], trie.levels[n - 1]
            assert context.children is not None
            fields = _rank_widths(trie.levels, n, None if n == 2 else found[n - 3])
            width_C = widths(context.children)
            ranks = found[n - 2] - np.repeat(fields.first.astype(np.int64), width_C)
            odds, left = _odds(context, level, trie.levels[n - 2].probs[found[n - 2]])
            table, left_table = centres(odds, bits), centres(left, bits)
            codes, left_codes = nearest(odds, table), nearest(left, left_table)
            arrays |= {
                _name(n - 1, "widths"): bitfields.pack_runs(context.children),
                _name(n - 1, "left"): bitfields.pack(left_codes, _same(bits, len(left_codes))),
                _name(n - 1, "left-bins"): left_table,
                _name(n, "ranks"): bitfields.pack(ranks, np.repeat(fields.bits, width_C)),
                _name(n, "codes"): bitfields.pack(codes, _same(bits, len(codes))),
                _name(n, "bins"): table,
            }
        return cls(bits, tuple(trie.sizes), arrays)

    @classmethod
    def read(cls, bits: int, sizes: tuple[int, ...], read: Callable[[str], Array]) -> QuantizedTrie:
        """Read all arrays by name."""
        parts = ("widths", "left", "left-bins")
        above = ("ranks", "codes", "bins")
        names = ["ngram-1.probs.npy"]
        for n in range(2, len(sizes) + 1):
            names += [_name(n - 1, part) for part in parts] + [_name(n, part) for part in above]
        return cls(bits, sizes, {name: read(name) for name in names})

    def trie(self) -> Trie:
        """Expand into a trie in memory; `DamagedError` if the arrays contradict each other."""
        unigrams = self.arrays["ngram-1.probs.npy"]
        if len(unigrams) != self.sizes[0]:
            raise DamagedError("the unigrams of the model are not as many as announced; train the run again")
        levels = [Level(np.arange(len(unigrams), dtype=np.int32), unigrams, None, None)]
        found: Array | None = None
        for n in range(2, len(self.sizes) + 1):
            try:
                found = self._expand(n, levels, found)
            except (ValueError, IndexError) as error:
                raise DamagedError(
                    f"the arrays of the {n}-grams are damaged ({error}); train the run again"
                ) from error
        return Trie(tuple(levels))

    def _expand(self, n: int, levels: list[Level], below_links: Array | None) -> Array:
        """Add order n; return, for each of its n-grams, the node without its first token."""
        context, size = levels[-1], self.sizes[n - 1]
        children = bitfields.unpack_runs(self.arrays[_name(n - 1, "widths")], len(context), size)
        levels[-1] = Level(context.words, context.probs, None, as_offsets(children))
        fields, width_C = _rank_widths(levels, n, below_links), widths(children)
        ranks = bitfields.unpack(self.arrays[_name(n, "ranks")], np.repeat(fields.bits, width_C))
        found = np.repeat(fields.first, width_C)
        found += ranks
        if len(found) and found.max() >= len(context):
            raise ValueError("a rank is too large")
        codes = bitfields.unpack(self.arrays[_name(n, "codes")], _same(self.bits, size))
        table, left = _sigmoid(self.arrays[_name(n, "bins")]), self._left(n, codes, children)
        if size and codes.max() >= len(table):
            raise ValueError("a code is too large")
        spread = _spread if size <= bitfields.SMALL else _spread_compiled
        probs, weights = spread(children, found, context.probs, codes, table, left)
        levels[-1] = Level(context.words, context.probs, weights, levels[-1].children)
        levels.append(Level(context.words[found], probs, None, None))
        return found

    def _left(self, n: int, codes: Array, children: Array) -> Array:
        """Return the mass that each context leaves: 1 - p of its only extension, or what is stored."""
        width_C = np.diff(children)
        found = np.zeros(len(width_C))
        single, several = width_C == 1, width_C > 1
        found[single] = _sigmoid(-self.arrays[_name(n, "bins")])[codes[children[:-1][single]]]
        count = int(several.sum())
        stored = bitfields.unpack(self.arrays[_name(n - 1, "left")], _same(self.bits, count))
        found[several] = _sigmoid(self.arrays[_name(n - 1, "left-bins")])[stored]
        return found


@dataclass(frozen=True)
class _Ranks:
    """Where the extensions of each context without its first token begin, and the bits of their number."""

    first: Array  # uint32 or uint64
    bits: Array  # uint8


def _rank_widths(levels: tuple[Level, ...] | list[Level], n: int, below_links: Array | None) -> _Ranks:
    """Return this for each context of n-1 tokens; without its one token a context is empty."""
    if below_links is None:
        size = len(levels[0])
        first = np.zeros(size, dtype=np.uint32)
        return _Ranks(first, np.full(size, max(size - 1, 0).bit_length(), dtype=np.uint8))
    children = levels[n - 3].children
    assert children is not None
    most = np.maximum(widths(children) - 1, 0)
    bits = np.frexp(most.astype(np.float64))[1].astype(np.uint8)  # of 0: 0, of 1: 1, of 2 and 3: 2
    return _Ranks(children[below_links], bits[below_links])


def _odds(context: Level, level: Level, below: Array) -> tuple[Array, Array]:
    """Return the log-odds of every n-gram, and of what is left by every context of several extensions."""
    assert context.children is not None
    assert context.backoffs is not None
    children = context.children.astype(np.int64)
    p = np.maximum(level.probs.astype(np.float64), LEAST)
    seen = _sums(p, children)
    left = context.backoffs.astype(np.float64) * np.maximum(1.0 - _sums(below, children), 0.0)
    left = np.maximum(left, LEAST)
    several = np.diff(children) > 1
    total = np.repeat(seen + left, np.diff(children))
    return np.log(p) - np.log(np.maximum(total - p, LEAST)), np.log(left[several]) - np.log(seen[several])


def _spread(
    children: Array, found: Array, below: Array, codes: Array, table: Array, left: Array
) -> tuple[Array, Array]:
    """Return p of all n-grams, and backoff weights with which every context sums to one."""
    width_C, shown = np.diff(children), table[codes]
    rest = np.maximum(1.0 - _sums(below[found], children), 0.0)
    left = np.where(rest < _NEARLY_NONE, rest, left)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = (1.0 - left) / _sums(shown, children)
        weights = np.where(rest < _NEARLY_NONE, 1.0, left / rest)
    weights[width_C == 0] = 1.0
    return (shown * np.repeat(scale, width_C)).astype(np.float32), weights.astype(np.float32)


def _spread_compiled(
    children: Array, found: Array, below: Array, codes: Array, table: Array, left: Array
) -> tuple[Array, Array]:
    from nextword.ngram.fast import bitfield_kernels

    probs, weights = np.empty(len(found), dtype=np.float32), np.empty(len(left), dtype=np.float32)
    bitfield_kernels.spread(children, found, below, codes, table, left, _NEARLY_NONE, probs, weights)
    return probs, weights


def _sums(values: Array, children: Array) -> Array:
    """Sum over the extensions of each context."""
    found = np.zeros(len(children) - 1)
    some = children[1:] > children[:-1]
    if some.any():
        found[some] = np.add.reduceat(values, children[:-1][some], dtype=np.float64)
    return found


def _sigmoid(odds: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-odds.astype(np.float64))))


def _same(bits: int, count: int) -> Array:
    return np.full(count, bits, dtype=np.uint8)


def _name(n: int, part: str) -> str:
    return f"ngram-{n}.{part}.npy"
