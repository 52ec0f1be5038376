"""A model of the whitespace between words, which makes word tokens a lossless code for the file.

A word is nearly always preceded by a single space, the first word and the end of a line by nothing; that
costs next to nothing, and everything else can still be coded. [design: bits per byte require a code for
the bytes of the file]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterable
from typing import Any

import numpy as np

from nextword.core.errors import FormatError
from nextword.text.chunks import SPACES
from nextword.text.scan import EXPECTED, GapCounts

Array = np.ndarray[Any, np.dtype[Any]]
Symbols = tuple[tuple[Array, int], ...]  # input of an entropy coder: (probabilities, index)
Asking = Generator[Array, int, bytes]  # yields probabilities, is sent the index, returns the bytes

KINDS = ("leading", "inner", "trailing", "blank")
LISTED = 63  # gaps of each kind with an entry of their own; the rest are spelled
_END = len(SPACES)  # the symbol after the last character of a spelled gap
_PRIOR = 0.5  # the Krichevsky-Trofimov estimate: half a count for the unseen


class GapModel:
    """For every kind of gap, the counts of its frequent gaps, and a spelling for all others."""

    def __init__(self, listed: list[dict[bytes, int]], escaped: list[int]) -> None:
        self.listed, self.escaped = listed, escaped
        self._tables = [self._table(kind) for kind in range(len(KINDS))]
        self._positions = [{gap: i for i, gap in enumerate(gaps)} for gaps in listed]
        self._spelling = self._spelling_table()
        self._costs: dict[tuple[int, bytes], float] = {}

    @classmethod
    def fit(cls, counts: GapCounts) -> GapModel:
        """Give the most frequent gaps of each kind an entry; the expected one always has one."""
        listed, escaped = [], []
        for kind, expected in enumerate(EXPECTED):
            of_kind = {gap: n for (k, gap), n in counts.items() if k == kind and gap != expected}
            often = sorted(of_kind.items(), key=lambda item: (-item[1], item[0]))
            listed.append({expected: counts[kind, expected], **dict(often[: LISTED - 1])})
            escaped.append(sum(n for _, n in often[LISTED - 1 :]))
        return cls(listed, escaped)

    @classmethod
    def default(cls) -> GapModel:
        """Return the model for a vocabulary without a text: the expected gaps, each seen a thousand times."""
        return cls.fit(Counter(dict.fromkeys(enumerate(EXPECTED), 1000)))

    def _table(self, kind: int) -> Array:
        counts = np.array([*self.listed[kind].values(), self.escaped[kind]], np.float64) + _PRIOR
        table: Array = counts / counts.sum()
        return table

    def _spelling_table(self) -> Array:
        """Return p(next character | previous one), from the listed gaps, each counted once."""
        counts = np.full((_END + 1, _END + 1), _PRIOR)
        for gap in {gap for gaps in self.listed for gap in gaps}:
            before = _END
            for symbol in [*(SPACES.index(byte) for byte in gap), _END]:
                counts[before, symbol] += 1
                before = symbol
        table: Array = counts / counts.sum(axis=1, keepdims=True)
        return table

    def symbols(self, kind: int, gap: bytes) -> Symbols:
        """Return the symbols an entropy coder must code for this gap."""
        position = self._positions[kind].get(gap)
        if position is not None:
            return ((self._tables[kind], position),)
        out = [(self._tables[kind], len(self._positions[kind]))]
        before = _END
        for symbol in [*(SPACES.index(byte) for byte in gap), _END]:
            out.append((self._spelling[before], symbol))
            before = symbol
        return tuple(out)

    def ask(self, kind: int) -> Asking:
        """Decode a gap: ask for symbols and return it."""
        position = yield self._tables[kind]
        if position < len(self._positions[kind]):
            return list(self._positions[kind])[position]
        gap, before = bytearray(), _END
        while (symbol := (yield self._spelling[before])) != _END:
            gap.append(SPACES[symbol])
            before = symbol
        return bytes(gap)

    def cost(self, kind: int, gap: bytes) -> float:
        """Return the nats of one gap."""
        if (kind, gap) not in self._costs:
            if len(self._costs) > 1 << 16:
                self._costs.clear()
            self._costs[kind, gap] = -sum(math.log(p[i]) for p, i in self.symbols(kind, gap))
        return self._costs[kind, gap]

    def total_cost(self, counts: GapCounts) -> float:
        """Return the nats of all gaps of a text."""
        return sum(n * self.cost(kind, gap) for (kind, gap), n in counts.items())

    def to_json(self) -> dict[str, Any]:
        """Return the model as stored in ``tokenizer.json``."""
        return {
            name: {"listed": [[gap.decode("ascii"), n] for gap, n in gaps.items()], "escaped": escaped}
            for name, gaps, escaped in zip(KINDS, self.listed, self.escaped, strict=True)
        }

    @classmethod
    def from_json(cls, value: Any, path: str) -> GapModel:
        """Read and check what `to_json` wrote."""
        try:
            listed = [dict(_checked(value[name]["listed"])) for name in KINDS]
            escaped = [_count(value[name]["escaped"]) for name in KINDS]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"the tokenizer's gaps are damaged ({error!r})", path) from error
        if any(EXPECTED[kind] not in gaps for kind, gaps in enumerate(listed)):
            raise FormatError("the tokenizer's gaps lack the expected one; train the run again", path)
        return cls(listed, escaped)


def _checked(pairs: Iterable[tuple[str, int]]) -> list[tuple[bytes, int]]:
    found = [(gap.encode("ascii"), _count(n)) for gap, n in pairs]
    if len(found) > LISTED or any(gap.strip(SPACES) for gap, _ in found):
        raise ValueError("too many gaps, or one that is not whitespace")
    return found


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise ValueError(f"{value!r} is not a count")
    return value
