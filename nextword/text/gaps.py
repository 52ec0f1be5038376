"""A model of the white space between words, so that words alone are a code for the whole file.

Before a word stands a single space nearly always, before the first word and the end of a line nothing;
that costs next to nothing, and everything else can be written all the same. [design: bits per byte mean
a code for the bytes of the file]
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
Symbols = tuple[tuple[Array, int], ...]  # what an entropy coder codes: (probabilities, which one)
Asking = Generator[Array, int, bytes]  # yields probabilities, is sent which one, returns the bytes

KINDS = ("leading", "inner", "trailing", "blank")
LISTED = 63  # gaps of a kind that have an entry of their own; the rest is spelled
_END = len(SPACES)  # the symbol after the last character of a spelled gap
_PRIOR = 0.5  # the Krichevsky-Trofimov estimate: half a count for what was not seen


class GapModel:
    """For every kind of gap: how often each of a few gaps was seen, and a spelling for the others."""

    def __init__(self, listed: list[dict[bytes, int]], escaped: list[int]) -> None:
        self.listed, self.escaped = listed, escaped
        self._tables = [self._table(kind) for kind in range(len(KINDS))]
        self._positions = [{gap: i for i, gap in enumerate(gaps)} for gaps in listed]
        self._spelling = self._spelling_table()
        self._costs: dict[tuple[int, bytes], float] = {}

    @classmethod
    def fit(cls, counts: GapCounts) -> GapModel:
        """The most frequent gaps of each kind get an entry; the expected one always has it."""
        listed, escaped = [], []
        for kind, expected in enumerate(EXPECTED):
            of_kind = {gap: n for (k, gap), n in counts.items() if k == kind and gap != expected}
            often = sorted(of_kind.items(), key=lambda item: (-item[1], item[0]))
            listed.append({expected: counts[kind, expected], **dict(often[: LISTED - 1])})
            escaped.append(sum(n for _, n in often[LISTED - 1 :]))
        return cls(listed, escaped)

    @classmethod
    def default(cls) -> GapModel:
        """For a vocabulary without a text: the expected gaps, seen a thousand times each."""
        return cls.fit(Counter(dict.fromkeys(enumerate(EXPECTED), 1000)))

    def _table(self, kind: int) -> Array:
        counts = np.array([*self.listed[kind].values(), self.escaped[kind]], np.float64) + _PRIOR
        table: Array = counts / counts.sum()
        return table

    def _spelling_table(self) -> Array:
        """p(next character | the one before), from the listed gaps, each taken once."""
        counts = np.full((_END + 1, _END + 1), _PRIOR)
        for gap in {gap for gaps in self.listed for gap in gaps}:
            before = _END
            for symbol in [*(SPACES.index(byte) for byte in gap), _END]:
                counts[before, symbol] += 1
                before = symbol
        table: Array = counts / counts.sum(axis=1, keepdims=True)
        return table

    def symbols(self, kind: int, gap: bytes) -> Symbols:
        """What an entropy coder has to code for this gap."""
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
        """The other direction: asks for symbols and returns the gap."""
        position = yield self._tables[kind]
        if position < len(self._positions[kind]):
            return list(self._positions[kind])[position]
        gap, before = bytearray(), _END
        while (symbol := (yield self._spelling[before])) != _END:
            gap.append(SPACES[symbol])
            before = symbol
        return bytes(gap)

    def cost(self, kind: int, gap: bytes) -> float:
        """Nats of one gap."""
        if (kind, gap) not in self._costs:
            if len(self._costs) > 1 << 16:
                self._costs.clear()
            self._costs[kind, gap] = -sum(math.log(p[i]) for p, i in self.symbols(kind, gap))
        return self._costs[kind, gap]

    def total_cost(self, counts: GapCounts) -> float:
        """Nats of all gaps of a text."""
        return sum(n * self.cost(kind, gap) for (kind, gap), n in counts.items())

    def to_json(self) -> dict[str, Any]:
        """As it stands in ``tokenizer.json``."""
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
            raise FormatError(
                f"the gaps of the tokenizer are not as they were written ({error!r})", path
            ) from error
        if any(EXPECTED[kind] not in gaps for kind, gaps in enumerate(listed)):
            raise FormatError("the gaps of the tokenizer lack the expected one; train the run again", path)
        return cls(listed, escaped)


def _checked(pairs: Iterable[tuple[str, int]]) -> list[tuple[bytes, int]]:
    found = [(gap.encode("ascii"), _count(n)) for gap, n in pairs]
    if len(found) > LISTED or any(gap.strip(SPACES) for gap, _ in found):
        raise ValueError("too many gaps, or one that is no white space")
    return found


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise ValueError(f"{value!r} is no count")
    return value
