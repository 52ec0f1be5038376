"""What attention remembers: keys and values of the tokens of the window, in buffers with spare room.

Reading a token must not cost the reading of all tokens before it again. A state never changes: the state
that owns its buffers appends to them, which no older state looks at; any other state copies them first. The
bookkeeping of one forward pass is a `Reading`, made once and used by all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import NamedTuple

import torch
from torch import Tensor

from nextword.blocks.states import State, take_rows

AHEAD = 16  # free slots of a new buffer, at least: all are set to 0, in every layer
_AHEAD_OF_ROWS = 4  # and of one made of rows of another: a beam takes rows again at the next step


class KeysValues(NamedTuple):
    """Keys and values of each token of a row's window, from the left; the slots behind them are finite."""

    keys_BNSK: Tensor
    values_BNSK: Tensor


def take_windows(state: State, rows_B: Tensor, most: int) -> State:
    """Take these rows, as `take_rows` does; of keys and values only the first slots, ``most`` of them."""
    if isinstance(state, KeysValues):
        return KeysValues(*(_take_slots(part, rows_B, min(most, part.shape[2])) for part in state))
    if type(state) is tuple:
        return tuple(take_windows(part, rows_B, most) for part in state)
    return take_rows(state, rows_B)


def _take_slots(buffer_BNSK: Tensor, rows_B: Tensor, most: int) -> Tensor:
    """Copy rows and leave a little room behind, which is finite."""
    _, N, _, K = buffer_BNSK.shape
    taken_BNSK = buffer_BNSK.new_empty(len(rows_B), N, most + _AHEAD_OF_ROWS, K)
    taken_BNSK[:, :, most:] = 0.0
    kept_BNSK = taken_BNSK[:, :, :most]
    torch.index_select(buffer_BNSK[:, :, :most], 0, rows_B.to(buffer_BNSK.device), out=kept_BNSK)
    return taken_BNSK


class Memory(NamedTuple):
    """An encoder's output, for cross-attention: a feature for each position, and how many are real.

    ``tokens_BS``: what a decoder may copy from each position (`blocks.copying`); None: it copies nothing.
    """

    features_BSD: Tensor
    lengths_B: Tensor
    tokens_BS: Tensor | None = None


class Reading:
    """One forward pass over new tokens: their positions, the keys they see, whether buffers may be written.

    ``before``: how many tokens each row's window holds already; ``lengths``: how many new ones are real;
    ``T``: how many columns are read. Rows whose numbers differ are written and masked one by one.
    ``ahead``: how many of the first keys of each row every token sees, also those before them (a prefix).
    """

    def __init__(
        self,
        before: Sequence[int],
        lengths: Sequence[int],
        T: int,
        context: int,
        device: torch.device,
        in_place: bool = False,
        ahead: Sequence[int] | None = None,
    ) -> None:
        self.T, self.device, self.in_place, self.ahead = T, device, in_place, ahead
        self.before, self.lengths = before, lengths
        self.is_even = min(before) == max(before)
        self.is_full = min(lengths) == max(lengths) == T
        self.first = before[0] if self.is_even else -1
        self.is_fresh = self.is_even and self.first == 0
        self.keys = T if self.is_fresh else max(*map(add, before, lengths), 1)  # slots that are looked at
        self.room = min(context, max(self.keys + AHEAD, 2 * max(before)))
        self.shared: dict[str, Tensor] = {}  # what one layer passes to later ones in this pass
        self._seen: Tensor | None = None
        self._places: slice | Tensor | None = None
        self._slots: tuple[Tensor, Tensor, Tensor] | None = None
        self._ends: tuple[Tensor, Tensor] | None = None

    @property
    def places(self) -> slice | Tensor:
        """Return the positions of the new tokens: a slice where all rows agree, else ``positions_BT``."""
        if self._places is None:
            if self.is_even:
                self._places = slice(self.first, self.first + self.T)
            else:
                places_BT = torch.tensor(self.before)[:, None] + torch.arange(self.T)
                last_B1 = torch.tensor(self.before)[:, None] + torch.tensor(self.lengths)[:, None] - 1
                self._places = places_BT.minimum(last_B1.clamp(min=0)).to(self.device)
        return self._places

    @property
    def is_causal(self) -> bool:
        """Tell whether there was nothing before: a plain causal mask, padding after all real tokens."""
        return self.is_fresh and self.ahead is None

    @property
    def mask(self) -> Tensor | None:
        """Return which keys are seen, where that is neither all of them nor a plain causal mask."""
        return None if self.is_causal or (self.is_even and self.T == 1) else self.seen()

    def seen(self) -> Tensor:
        """Return True where a token sees a key: (T, S), or (B, 1, T, S) where rows differ."""
        if self._seen is None:
            S, places = torch.arange(self.keys, device=self.device), self.places
            if isinstance(places, slice):
                self._seen = torch.arange(places.start, places.stop, device=self.device)[:, None] >= S
            else:
                self._seen = (places[..., None] >= S)[:, None]
            if self.ahead is not None:
                ahead_B = torch.tensor(self.ahead, device=self.device)
                self._seen = self._seen | (ahead_B[:, None] > S)[:, None, None]
        return self._seen

    def filled(self) -> Tensor | None:
        """Return True where a slot holds a token: (B, 1, 1, S); None: all do."""
        ends = [b + n for b, n in zip(self.before, self.lengths, strict=True)]
        return None if min(ends) == self.keys else real_slots(torch.tensor(ends), self.keys, self.device)

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        """Return the number of each row, and how many tokens it has with the new ones."""
        if self._ends is None:
            ends_B = torch.tensor(self.before) + torch.tensor(self.lengths)
            self._ends = torch.arange(len(ends_B)), ends_B
        return self._ends

    def real(self) -> Tensor:
        """Return ``real_BT``: which columns are tokens."""
        lengths_B = torch.tensor(self.lengths, device=self.device)
        return torch.arange(self.T, device=self.device) < lengths_B[:, None]

    def append(self, old_BNSK: Tensor, new_BNTK: Tensor) -> Tensor:
        """Append the new entries to a buffer; only real tokens are written."""
        if self.is_fresh:
            return new_BNTK
        if self.in_place and old_BNSK.shape[2] >= self.keys:
            buffer = old_BNSK
        else:
            B, N, _, K = old_BNSK.shape
            buffer = old_BNSK.new_zeros(B, N, max(self.room, self.keys), K)
            most = max(self.before)
            buffer[:, :, :most] = old_BNSK[:, :, :most]
        if self.is_even:
            buffer[:, :, self.first : self.keys] = new_BNTK[:, :, : self.keys - self.first]
        else:
            rows, columns, slots = self.slots
            buffer[rows, :, slots] = new_BNTK[rows, :, columns]
        return buffer

    @property
    def slots(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return row, column and slot of every real token."""
        if self._slots is None:
            rows, columns = self.real().nonzero(as_tuple=True)
            self._slots = rows, columns, torch.tensor(self.before, device=self.device)[rows] + columns
        return self._slots


def real_slots(lengths_B: Tensor, slots: int, device: torch.device) -> Tensor:
    """Return True where a slot of a row is below the row's length: (B, 1, 1, S); an empty row sees all slots.

    A softmax over nothing is NaN, and the output of an empty row is not used.
    """
    lengths_B = torch.where(lengths_B > 0, lengths_B, slots).to(device)
    return (torch.arange(slots, device=device) < lengths_B[:, None])[:, None, None]
