"""The Transformer language model: embeddings, a stack of blocks, a head; every part is named by a setting.

"Transformer Language Model" [MAUSAM]; Vaswani et al. 2017, Radford et al. 2019 (GPT-2). The defaults are what
learns most per minute in a small model: rotary positions, RMSNorm before each part, normed queries and keys,
ReLU², parts whose output is zero at first. GPT-2 and Llama are other settings of the same parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import add
from typing import Any, ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks import losses
from nextword.blocks.ahead import Ahead, further_loss
from nextword.blocks.cache import KeysValues, Reading, take_windows
from nextword.blocks.cost import Cost
from nextword.blocks.cross import SourceKeys
from nextword.blocks.dropout import Dropout
from nextword.blocks.embeddings import make_embedding
from nextword.blocks.frequencies import start_with_frequencies
from nextword.blocks.heads import make_head
from nextword.blocks.layout import lay_out
from nextword.blocks.shape import Shape
from nextword.blocks.stack import Stack
from nextword.blocks.states import join_rows, take_rows
from nextword.core.catalog import find
from nextword.core.contracts import START, Array, State, never_next, refuse_source
from nextword.core.settings import Slot
from nextword.data.batches.batch import NOT_COUNTED
from nextword.data.batches.corrupted import MaskSettings, SpanSettings
from nextword.models.build import keep_of, shape_of
from nextword.models.counts import count
from nextword.models.family import NeuralFamily, NeuralSettings
from nextword.models.network import Network
from nextword.models.parts import PartSettings
from nextword.models.reread import Plan

POSITIONS = 4096  # tokens that are read at once, at most, where no gradient is needed


class DecoderSettings(PartSettings, NeuralSettings):
    """A Transformer that reads from left to right, with or without a source."""

    overlap: float = Field(0.5, ge=0, lt=1, description="share of a full context that is read again")
    head_bias: bool = Field(
        False, description="bias of the softmax head; the adaptive one always has its own"
    )
    mask_impossible: bool = Field(
        False,
        description="softmax head: leave START and UNKNOWN out in training, as always when a run is used",
    )
    frequencies: bool = Field(
        True,
        description="without a bias: begin with the tokens' frequencies in a coordinate of tied embeddings",
    )
    output_scale: float = Field(
        1.0, ge=0, description="what features are multiplied by before the head; 0: hidden^-0.5"
    )
    endless: bool = Field(
        False, description="read on past the context, where every mixer has a state of fixed size"
    )
    base_width: int = Field(
        0, ge=0, le=2**16, description="width that train.rate was tuned at (muP, needs scale=linear); 0: none"
    )
    ahead: int = Field(0, ge=0, le=16, description="tokens that are predicted in training after the next one")
    ahead_weight: float = Field(0.3, ge=0, le=10, description="weight of the loss of each of these")
    earlier: ClassVar[Mapping[str, Any]] = {
        "head_bias": True, "mask_impossible": True, "frequencies": False,
    }  # fmt: skip


class WindowState(NamedTuple):
    """The tokens of each row's window, and what the layers remember of them.

    ``newest`` is shared by all states that share buffers: the number of the last of them.
    """

    ids_BS: Tensor
    count_B: Tensor
    layers: tuple[State, ...]
    number: Tensor
    newest: Tensor


class TransformerNetwork(Network):
    """Reads windows of at most W tokens; past them the last tokens are read again as a new window.

    ``marks``: ids behind the vocabulary that no text has, such as a blank; the first ``written`` of them are
    also predicted.
    """

    kind = "transformer"
    rows: ClassVar[type[Any] | None] = None  # batches of its own, where the objective is not the next token

    def __init__(
        self,
        settings: DecoderSettings,
        vocab_size: int,
        closed: bool,
        shape: Shape | None = None,
        marks: int = 0,
        written: int = 0,
    ) -> None:
        super().__init__()
        shape = shape_of(settings) if shape is None else shape
        self.vocab_size, self.width, self.endless = vocab_size, shape.width, settings.endless
        self.context = None if self.endless else shape.context
        self.window, self.keep, self.carries = shape.context, keep_of(settings), settings.carry
        self.marks, self.written = marks, written
        self.has_frequencies = settings.frequencies
        self.embedding = make_embedding(
            settings.embedding_kind, vocab_size + marks, shape.width, shape.options
        )
        self.position = find("position", settings.position)(shape)
        self.drop = Dropout(shape.dropout) if shape.dropout else None
        self.stack: Stack = find("stack", shape.stack)(shape, self.position)
        tied = self.embedding if settings.tied else None
        self.head = make_head(
            settings.head, shape.width, vocab_size + written, never_next(closed), tied,
            settings.head_bias, settings.mask_impossible, shape.options,
        )  # fmt: skip
        self.rate_factor = settings.base_width / shape.width if settings.base_width else 1.0
        self.output_scale = (settings.output_scale or shape.width**-0.5) * self.rate_factor
        self.ahead_weight = settings.ahead_weight
        if settings.ahead:
            self.further = nn.ModuleList(Ahead(shape, self.output_scale) for _ in range(settings.ahead))
        find("init", settings.init)(self)

    @classmethod
    def made(cls, settings: Any, vocab_size: int, closed: bool) -> Network:
        """Make a network for this objective: the slot "objective"."""
        return cls(settings, vocab_size, closed)

    @classmethod
    def cost(cls, settings: Any, vocab_size: int) -> Cost | None:
        """Count the weights by formula; None: there is none."""
        return count(settings, vocab_size)

    def prepare(self, counts_V: Tensor) -> None:
        """Use the counts of the tokens before training: in the head, or without a bias in the embedding."""
        super().prepare(counts_V)
        if self.has_frequencies:
            start_with_frequencies(self, counts_V, self.output_scale)

    def lay_out(self) -> None:
        """Pack matrices, and lay out the others along their longer sides."""
        super().lay_out()
        lay_out(self)

    def start(self, batch: int, source: Any = None) -> WindowState:
        """Return empty windows."""
        refuse_source(source)
        ids_BS = torch.zeros(batch, 0, dtype=torch.int64, device=self.device)
        return first_state(ids_BS, torch.zeros(batch, dtype=torch.int64), self.stack.start(batch))

    def foresee(self, features_BTD: Tensor, targets_BT: Tensor, resets_BT: Array | None) -> None:
        """Add the losses of further tokens; those of another document do not count."""
        if not hasattr(self, "further"):
            return
        for number, part in enumerate(self.further, start=1):
            later_BT = targets_BT[:, number:]
            if resets_BT is not None:
                begun_BT = torch.from_numpy(resets_BT).to(later_BT.device).cumsum(dim=1)
                is_other_BT = begun_BT[:, number:] != begun_BT[:, : begun_BT.shape[1] - number]
                later_BT = later_BT.masked_fill(is_other_BT, NOT_COUNTED)
            foreseen = partial(further_loss, part, self.head, features_BTD[:, : later_BT.shape[1]], later_BT)
            losses.add(f"ahead {number + 1}", self.ahead_weight, foreseen)

    def reorder(self, state: WindowState, rows_B: Tensor) -> WindowState:
        """Copy these rows."""
        if torch.is_grad_enabled():
            return first_state(*take_rows(state[:3], rows_B))
        count_B = take_rows(state.count_B, rows_B)
        most = max(count_B.tolist(), default=0)  # rows that are not taken may have been longer
        ids_BS = take_rows(state.ids_BS[:, :most], rows_B)
        return first_state(ids_BS, count_B, take_windows(state.layers, rows_B, most))

    def branch(self, state: WindowState) -> WindowState:
        """Keep what the rows of a search have in common once."""
        return first_state(state.ids_BS, state.count_B, self.stack.branched(state.layers, state.count_B))

    def rewind(
        self, before: WindowState, after: WindowState, read: int, counts_B: Tensor
    ) -> WindowState | None:
        """Forget the last tokens of each window: their slots will be written over."""
        layers = _rewound(after.layers)
        if layers is None or bool((after.count_B != before.count_B + read).any()):
            return None
        after.newest.add_(1)
        count_B = before.count_B + counts_B.cpu()
        return WindowState(after.ids_BS, count_B, layers, after.newest.clone(), after.newest)

    def join(self, states: Sequence[WindowState]) -> WindowState:
        """Copy all rows; a single state stays as it is, since it may share its buffers."""
        return states[0] if len(states) == 1 else first_state(*join_rows([state[:3] for state in states]))

    def read(
        self, ids_BT: Tensor, state: WindowState, lengths_B: Tensor | None = None
    ) -> tuple[Tensor, WindowState]:
        """Run the forward pass: in the present window where the tokens fit, else in windows of their own."""
        B, T = ids_BT.shape
        lengths = [T] * B if lengths_B is None else lengths_B.tolist()
        before = state.count_B.tolist()
        if self.endless:
            return self._stream(ids_BT, state, before, lengths)
        plan = Plan(before, lengths, self.window, self.keep)
        if plan.fits:
            return self._append(ids_BT, state, before, lengths)
        return self._roll(ids_BT, state, before, plan)

    def _stream(
        self, ids_BT: Tensor, state: WindowState, before: list[int], lengths: list[int]
    ) -> tuple[Tensor, WindowState]:
        """Read on, however much came before; without a gradient a few positions at a time."""
        B, T = ids_BT.shape
        size = T if torch.is_grad_enabled() else max(1, POSITIONS // max(1, B))
        found = []
        for at in range(0, T, max(1, size)):
            now = [min(max(length - at, 0), size) for length in lengths]
            features_BTD, state = self._pass(ids_BT[:, at : at + size], state, before, now)
            before = [b + n for b, n in zip(before, now, strict=True)]
            found.append(features_BTD)
        if not found:
            return torch.zeros(B, 0, self.width, dtype=self.dtype, device=self.device), state
        return found[0] if len(found) == 1 else torch.cat(found, dim=1), state

    def _append(
        self, ids_BT: Tensor, state: WindowState, before: list[int], lengths: list[int]
    ) -> tuple[Tensor, WindowState]:
        """Read tokens that fit into the windows; if there are many, a few rows at a time."""
        B, T = ids_BT.shape
        rows = max(1, POSITIONS // max(1, T))
        if rows >= B or torch.is_grad_enabled():
            return self._pass(ids_BT, state, before, lengths)
        found = []
        for first in range(0, B, rows):
            part = slice(first, first + rows)
            own = self.reorder(state, torch.arange(B, device=self.device)[part])
            found.append(self._pass(ids_BT[part], own, before[part], lengths[part]))
        features, states = zip(*found, strict=True)
        return torch.cat(features), first_state(*join_rows([state[:3] for state in states]))

    def _pass(
        self,
        ids_BT: Tensor,
        state: WindowState,
        before: list[int],
        lengths: list[int],
        skip: int = 0,
        ahead: list[int] | None = None,
    ) -> tuple[Tensor, WindowState]:
        """Run one pass through the stack; no features of the first ``skip`` tokens; ``ahead``: prefixes."""
        T = ids_BT.shape[1]
        longest = max(lengths, default=0)
        if longest == 0:
            return torch.zeros(*ids_BT.shape, self.width, dtype=self.dtype, device=self.device), state
        ids_BT = ids_BT[:, :longest]
        is_newest = _may_write(state)
        reading = Reading(before, lengths, longest, self.window, self.device, is_newest, ahead)
        features_BTD, layers = self._run(ids_BT, state.layers, reading, skip)
        if longest < T:
            features_BTD = nn.functional.pad(features_BTD, (0, 0, 0, T - longest))
        ids_BS = state.ids_BS
        if not self.endless:  # else nothing is read again
            ids_BS = reading.append(ids_BS[:, None, :, None], ids_BT[:, None, :, None])[:, 0, :, 0]
        count_B = torch.tensor(list(map(add, before, lengths)))
        if not is_newest or reading.is_fresh:
            return features_BTD, first_state(ids_BS, count_B, layers)
        state.newest.add_(1)
        return features_BTD, WindowState(ids_BS, count_B, layers, state.newest.clone(), state.newest)

    def _run(
        self, ids_BT: Tensor, layers: tuple[State, ...], reading: Reading, skip: int
    ) -> tuple[Tensor, tuple[State, ...]]:
        """Return the features of all tokens but the first ``skip``, and what the layers remember."""
        features_BTD, layers = self.stack(self._embed(ids_BT, reading), layers, reading, skip)
        return features_BTD if self.output_scale == 1.0 else features_BTD * self.output_scale, layers

    def _embed(self, ids_BT: Tensor, reading: Reading) -> Tensor:
        """Return the vectors of the tokens; 0 where there is none, whatever stands there."""
        if reading.is_full:
            x_BTD = self.embedding(ids_BT)
        else:
            real_BT = reading.real()
            x_BTD = self.embedding(ids_BT.masked_fill(~real_BT, START)).masked_fill(~real_BT[..., None], 0.0)
        x_BTD = self.position.embed(x_BTD, reading.places)
        return self.drop(x_BTD) if self.drop is not None and self.training else x_BTD

    def _roll(
        self, ids_BT: Tensor, state: WindowState, before: list[int], plan: Plan
    ) -> tuple[Tensor, WindowState]:
        """Read what still fits, then all further windows, each from nothing, as one batch."""
        from nextword.blocks.branches import plain

        state = state._replace(layers=plain(state.layers))
        features_BTD, state = self._append(ids_BT[:, : plan.T], state, before, plan.fitting)
        features_BTD = nn.functional.pad(features_BTD, (0, 0, 0, ids_BT.shape[1] - plan.T))
        windows_MW = plan.windows(ids_BT, state.ids_BS)
        states = []
        for part in plan.parts(max(1, POSITIONS // self.window)):
            lengths = plan.lengths[part]
            rows_MW, empty = windows_MW[part, : max(lengths)], self.start(len(lengths))
            read_MXD, after = self._pass(rows_MW, empty, [0] * len(lengths), lengths, self.keep)
            rows, columns, slots = plan.new(part, self.device)
            features_BTD.index_put_((rows, columns), read_MXD[slots].to(features_BTD.dtype))
            states.append(take_rows(after[:3], plan.last(part, self.device)))
        joined = join_rows([state[:3], *states])
        return features_BTD, first_state(*take_rows(joined, plan.owners(self.device)))


def _rewound(state: State) -> State | None:
    """Return what layers remember if it is nothing but keys and values, each in its own slot; else None.

    Where the last token looked in a source is not known any more: NaN.
    """
    if isinstance(state, KeysValues):
        return state
    if isinstance(state, SourceKeys):
        return state._replace(query_BNK=torch.full_like(state.query_BNK, torch.nan))
    parts = [_rewound(part) for part in state] if type(state) is tuple else [None]
    return None if any(part is None for part in parts) else tuple(parts)


def first_state(ids_BS: Tensor, count_B: Tensor, layers: tuple[State, ...]) -> WindowState:
    """Return a state whose buffers are its own."""
    zero = torch.zeros((), dtype=torch.int64)
    return WindowState(ids_BS, count_B, layers, zero, zero.clone())


def _may_write(state: WindowState) -> bool:
    """Tell whether the room after this state's tokens may be written: it is unused, without a gradient."""
    if torch.is_grad_enabled() or state.newest.is_inference() != torch.is_inference_mode_enabled():
        return False
    return int(state.newest) == int(state.number)


class TransformerSettings(DecoderSettings):
    """A Transformer, and what it learns from text. A part's name is one of its slot: `nextword list SLOT`."""

    objective: Slot["objective"] = Field(
        "causal",
        description="what is predicted: the next token (causal), blanks (masked), lost spans (span), what "
        "follows a prefix (prefix): slot objective",
    )
    masks: MaskSettings = Field(MaskSettings(), description="the objective masked")
    spans: SpanSettings = Field(SpanSettings(), description="the objective span")
    encoder_layers: int = Field(
        0, ge=0, le=4096, description="objective span: layers of an encoder beside the decoder; 0: no encoder"
    )


def _make(settings: TransformerSettings, vocab_size: int, closed: bool) -> Network:
    network: Network = find("objective", settings.objective).made(settings, vocab_size, closed)
    return network


def _cost(settings: TransformerSettings, vocab_size: int) -> Cost | None:
    cost: Cost | None = find("objective", settings.objective).cost(settings, vocab_size)
    return cost


# 8 rows of 256 tokens are an update: a step takes a fraction of a second on a processor of two cores.
DEFAULTS: dict[str, Any] = {"train.batch": 8}
TRANSFORMER = NeuralFamily("transformer", TransformerSettings, _make, DEFAULTS, row_length=0, formula=_cost)
"""Attention to all tokens of a window, with parts named by settings (Vaswani et al. 2017)."""
