"""Recurrent encoder-decoders: from one vector for the whole source to attention at every step.

Idea 1: the source is the decoder's first state (``init``). Idea 2: it is part of each input (``every-step``).
Attention: every step looks at all positions of the source [PENN "Sequence to sequence", "Attention
Mechanism: A Solution to the Bottleneck Problem"; MAUSAM "Attention"]. PENN combines both ideas, and keeps
h(0) = c under attention; Bahdanau et al. 2015, Luong et al. 2015.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, cast

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from nextword.blocks.cache import Memory
from nextword.blocks.cells import Cell, CellState
from nextword.blocks.copying import Copying, without_copies
from nextword.blocks.dropout import Dropout, mask
from nextword.blocks.embeddings import make_embedding
from nextword.blocks.heads import make_head
from nextword.blocks.recurrent import FastLayer
from nextword.blocks.source_attention import CoverageAttention, DotAttention
from nextword.blocks.sources import Sharing, join_sources, take_sources
from nextword.core.catalog import find
from nextword.core.contracts import Source, never_next
from nextword.core.settings import Slot
from nextword.data.paired import PairVocabulary
from nextword.models.family import ScaledSettings
from nextword.models.network import Network
from nextword.models.source_reader import SourceReader, SourceSettings, with_copies

CONTEXTS = ("init", "every-step", "attention")


class RecurrentTranslatorSettings(SourceSettings, ScaledSettings):
    """A recurrent decoder, and what it knows of its source."""

    layers: int = Field(1, ge=1, le=64, description="stacked recurrent layers L of the decoder")
    hidden: int = Field(256, ge=1, le=2**16, description="size H of a layer's state")
    embedding: int = Field(0, ge=0, le=2**16, description="size E of a token's vector; 0: as hidden")
    context: str = Field(
        "init+attention", description="what the decoder knows of the source: init, every-step, attention, +"
    )
    attend: Literal["before", "after"] = Field(
        "before", description="before: the previous state asks, c enters the cell; after: the new state asks"
    )
    attention: Slot["attention"] = Field("mlp", description="how positions are scored: slot attention")
    coverage: bool = Field(
        False, description="attention sees where it looked before, and looking twice costs; attention mlp"
    )
    readout: Literal["linear", "mlp"] = Field(
        "mlp", description="from state, context and last token to the distribution"
    )
    bidirectional: Literal["separate", "tied", "none"] = Field(
        "separate", description="a recurrent encoder reads from both ends, with separate or tied weights"
    )
    connections: Slot["connection"] = Field("plain", description="between stacked layers: slot connection")
    dropout: float = Field(0.2, ge=0, lt=1, description="share of the features dropped between layers")
    dropout_weight: float = Field(0.0, ge=0, lt=1, description="share of state-to-state weights dropped")

    @field_validator("context")
    @classmethod
    def _contexts(cls, context: str) -> str:
        parts = [part.strip() for part in context.split("+")]
        if not set(parts) <= set(CONTEXTS) or len(set(parts)) != len(parts):
            raise ValueError(f"it must be one or several of {', '.join(CONTEXTS)}, joined by +")
        return "+".join(part for part in CONTEXTS if part in parts)

    @model_validator(mode="after")
    def _looks(self) -> RecurrentTranslatorSettings:
        for name in ("copying", "coverage"):
            if getattr(self, name) and "attention" not in self.knows:
                raise ValueError(f"'{name}' needs 'attention' in 'context', which is '{self.context}'")
        if self.coverage and self.attention != "mlp":
            raise ValueError(f"'coverage' needs 'attention' mlp, and it is '{self.attention}'")
        return self

    @property
    def knows(self) -> frozenset[str]:
        """Return ``context`` as a set."""
        return frozenset(self.context.split("+"))

    def cell_options(self) -> dict[str, Any]:
        """Return the options of this family's cell beside its sizes."""
        return {}


class RNNTranslatorSettings(RecurrentTranslatorSettings):
    """The vanilla network."""

    feature_scale: ClassVar[float] = 34.0
    activation: Slot["cell_activation"] = Field("tanh", description="σ of the cell")

    def cell_options(self) -> dict[str, Any]:
        """Return the name of σ."""
        return {"activation": self.activation}


class Sources(NamedTuple):
    """What the rows know of their sources: keys and values of attention, and each source as one vector.

    ``tokens_US``: what may be copied from each position; no columns where nothing is.
    """

    keys_USA: Tensor
    values_USD: Tensor
    lengths_U: Tensor
    last_UD: Tensor
    tokens_US: Tensor
    rows_B: Tensor

    def taken(self, rows_B: Tensor) -> Sources:
        """Take these rows; what belongs to a source is shared."""
        kept, rows = take_sources(self[:5], self.rows_B, rows_B)
        return Sources._make((*kept, rows))

    def joined(self, states: Sequence[Sources]) -> Sources:
        """Put the rows of several states into one."""
        rows = [each.rows_B for each in states]
        kept, rows_B = join_sources([each[:5] for each in states], rows, (1, 1, 0, 0, 1))
        return Sources._make((*kept, rows_B))


class DecoderState(NamedTuple):
    """The states of the layers, what is fed to the next step, and where the last step looked.

    Under coverage also where all steps looked, and how much of it was seen before: Σ min(α(t), n(t)).
    """

    layers: tuple[CellState, ...]
    fed_BX: Tensor  # h̃ of the step before, where attention comes after the cell
    weights_BS: Tensor
    seen_BS: Tensor  # n; no columns without coverage
    again_B: Tensor
    sources: Sources


class RecurrentTranslator(Network):
    """A recurrent decoder that has read its source."""

    kind = "recurrent"
    context = None
    carries = False

    def __init__(self, cell: str, settings: RecurrentTranslatorSettings, vocabulary: PairVocabulary) -> None:
        super().__init__()
        H, E = settings.hidden, settings.embedding or settings.hidden
        target, knows = vocabulary.target, settings.knows
        self.vocab_size, self.hidden, self.width = target.vocab_size, H, E
        self.scale_words, self.scale_features = settings.scales(E)
        self.embedding = make_embedding(
            settings.embedding_kind, target.vocab_size, E, settings.option_groups()
        )
        self.reader = SourceReader(settings, cell, E, vocabulary, self.scale_words)
        if self.reader.is_shared:
            self.reader.embedding = self.embedding
        D = self.reader.width
        self.has_init, self.at_every_step = "init" in knows, "every-step" in knows
        self.covers = settings.coverage
        self.attends, self.is_after = "attention" in knows, settings.attend == "after"
        seen = 0
        if self.attends:
            kind = CoverageAttention if settings.coverage else find("attention", settings.attention)
            self.attention: DotAttention = kind(H, D)
            seen = self.attention.width
        fed = (H if self.is_after else seen) if self.attends else 0
        inputs = E + fed + (D if self.at_every_step else 0)
        self.layers, self.joins = nn.ModuleList(), nn.ModuleList()
        for _ in range(settings.layers):
            layer = cast(FastLayer, find("cell", cell)(inputs, H, **settings.cell_options()))
            layer.weight_drop = settings.dropout_weight
            join = find("connection", settings.connections)(inputs, H)
            self.layers.append(layer)
            self.joins.append(join)
            inputs = join.width
        parts = cast(Cell, self.layers[0]).parts
        self.to_state = nn.Linear(D, settings.layers * parts * H) if self.has_init else None
        if self.attends and self.is_after:
            self.combine = nn.Linear(seen + inputs, H)
            inputs, seen = H, 0
        inputs += seen + (D if self.at_every_step else 0) + E
        self.readout = _readout(settings.readout, inputs, H, E)
        self.share = settings.dropout
        self.drop = Dropout(settings.dropout)
        self.head = make_head(
            settings.head, E, target.vocab_size, never_next(target.closed),
            self.embedding if settings.tied else None, options=settings.option_groups(),
        )  # fmt: skip
        self.copying: Copying | None = None
        if settings.copying:
            self.copying, self.head = with_copies(self.head, E, inputs, vocabulary)

    def start(self, batch: int, source: Any = None) -> DecoderState:
        """Read the source: it becomes the first state, keys and values, or both."""
        assert isinstance(source, Source), "a translator is started with a source"
        memory = cast(Memory, self.reader.copied(self.reader(source), source, self.copying))
        h_BSD, lengths_B, tokens_BS = memory
        S, device = h_BSD.shape[1], h_BSD.device
        real_BS = torch.arange(S, device=device) < lengths_B[:, None]
        h_BSD = h_BSD.masked_fill(~real_BS[..., None], 0.0)
        last_BD = self.reader.last(memory).float()
        keys, values = self.attention.prepare(h_BSD) if self.attends else (h_BSD[:, :, :0], h_BSD[:, :, :0])
        tokens_BS = lengths_B.new_zeros(batch, 0) if tokens_BS is None else tokens_BS
        rows_B = torch.arange(batch, device=device)
        sources = Sources(keys, values, lengths_B, last_BD, tokens_BS, rows_B)
        fed = self.hidden if self.attends and self.is_after else 0
        fed_BX, weights_BS, seen_BS, again_B1 = (
            last_BD.new_zeros(batch, size) for size in (fed, S, S if self.covers else 0, 1)
        )
        first = self._first_states(last_BD)
        return DecoderState(first, fed_BX, weights_BS, seen_BS, again_B1[:, 0], sources)

    def _first_states(self, last_BD: Tensor) -> tuple[CellState, ...]:
        """Return h(0) = tanh(W c) of every layer, or 0."""
        parts, B, H = cast(Cell, self.layers[0]).parts, len(last_BD), self.hidden
        if self.to_state is None:
            return tuple(tuple(last_BD.new_zeros(B, H) for _ in range(parts)) for _ in self.layers)
        found = torch.tanh(self.to_state(last_BD)).float().view(B, len(self.layers), parts, H)
        return tuple(tuple(found[:, at, part] for part in range(parts)) for at in range(len(self.layers)))

    def looked(self, state: DecoderState) -> Tensor:
        """Return ``weights_BS`` of the last token."""
        return state.weights_BS

    def read(
        self, ids_BT: Tensor, state: DecoderState, lengths_B: Tensor | None = None
    ) -> tuple[Tensor, DecoderState]:
        """Run the forward pass: step by step with attention, else all positions at once."""
        if ids_BT.shape[1] == 0:
            none_BTD = torch.zeros(*ids_BT.shape, self.width, dtype=self.dtype, device=self.device)
            return self.plain(none_BTD, state), state
        x_TBE: Tensor = self.drop(self.embedding(ids_BT.T) * self.scale_words)
        given_TBX = x_TBE
        if self.at_every_step:
            last_BD = state.sources.last_UD[state.sources.rows_B]
            given_TBX = torch.cat([x_TBE, last_BD.expand(len(x_TBE), -1, -1)], dim=-1)
        run = self._step_by_step if self.attends else self._at_once
        out_TBX, weights_TBS, state = run(given_TBX, state, lengths_B)
        parts_TBX = torch.cat([out_TBX, given_TBX if self.at_every_step else x_TBE], dim=-1)
        features_TBE = self.readout(self.drop(parts_TBX)) * self.scale_features
        features_BTE = features_TBE.transpose(0, 1)
        if self.copying is None:
            return features_BTE, state
        parts_BTX, weights_BTS = parts_TBX.transpose(0, 1), weights_TBS.transpose(0, 1)
        sources = state.sources
        return self.copying(features_BTE, parts_BTX, weights_BTS, sources.tokens_US[sources.rows_B]), state

    def plain(self, features_BTD: Tensor, state: DecoderState) -> Tensor:
        """Return features that copy nothing, as wide as those of this state."""
        if self.copying is None:
            return features_BTD
        return without_copies(features_BTD, state.sources.tokens_US.shape[1])

    def _at_once(
        self, x_TBX: Tensor, state: DecoderState, lengths_B: Tensor | None
    ) -> tuple[Tensor, Tensor, DecoderState]:
        """Run layer by layer: without attention a step does not depend on what the step before looked at."""
        after = []
        for number, (layer, join, before) in enumerate(
            zip(self.layers, self.joins, state.layers, strict=True)
        ):
            x_TBX = self.drop(x_TBX) if number else x_TBX
            h_TBH, now = cast(FastLayer, layer).read(x_TBX, before, lengths_B)
            x_TBX = join(x_TBX, h_TBH)
            after.append(now)
        return x_TBX, x_TBX[..., :0], state._replace(layers=tuple(after))

    def _step_by_step(
        self, x_TBX: Tensor, state: DecoderState, lengths_B: Tensor | None
    ) -> tuple[Tensor, Tensor, DecoderState]:
        """Attend at every step; rows that have ended keep their state."""
        looking = _Looking(self.attention, state.sources)
        masks = self._masks(x_TBX)
        found, weights = [], []
        for t, x_BX in enumerate(x_TBX.unbind(0)):
            step = self._after if self.is_after else self._before
            out_BX, now = step(x_BX, state, looking, masks)
            if lengths_B is not None:
                now = _kept(now, state, t < lengths_B)
            found.append(out_BX)
            weights.append(now.weights_BS)
            state = now
        return torch.stack(found), torch.stack(weights) if self.copying else x_TBX[..., :0], state

    def _before(
        self, x_BX: Tensor, state: DecoderState, looking: _Looking, masks: Sequence[Tensor]
    ) -> tuple[Tensor, DecoderState]:
        """Compute α(t) from z(t-1), then z(t) = f(z(t-1), y(t-1), c(t)) (RNNsearch)."""
        c_BD, weights_BS = looking.at(state.layers[-1][0], state.seen_BS)
        h_BX, layers = self._cells(torch.cat([x_BX, c_BD], dim=-1), state.layers, masks)
        return torch.cat([h_BX, c_BD], dim=-1), _looked(state, weights_BS)._replace(layers=layers)

    def _after(
        self, x_BX: Tensor, state: DecoderState, looking: _Looking, masks: Sequence[Tensor]
    ) -> tuple[Tensor, DecoderState]:
        """Compute z(t) = f(z(t-1), [y(t-1); h̃(t-1)]), then α(t) from z(t), h̃(t) = tanh(W [c(t); z(t)])."""
        h_BX, layers = self._cells(torch.cat([x_BX, state.fed_BX], dim=-1), state.layers, masks)
        c_BD, weights_BS = looking.at(layers[-1][0], state.seen_BS)
        fed_BH = torch.tanh(self.combine(torch.cat([c_BD, h_BX], dim=-1))).float()
        return fed_BH, _looked(state, weights_BS)._replace(layers=layers, fed_BX=fed_BH)

    def _cells(
        self, x_BX: Tensor, states: Sequence[CellState], masks: Sequence[Tensor]
    ) -> tuple[Tensor, tuple[CellState, ...]]:
        """Run one step of all layers."""
        after = []
        for number, (layer, join, before) in enumerate(zip(self.layers, self.joins, states, strict=True)):
            x_BX = x_BX * masks[number - 1] if number and masks else x_BX
            cell = cast(FastLayer, layer)
            now = cell(x_BX, before) if torch.is_grad_enabled() else cell.step(x_BX, before)
            x_BX = join(x_BX, now[0])
            after.append(now)
        return x_BX, tuple(after)

    def _masks(self, x_TBX: Tensor) -> list[Tensor]:
        """Return what drops features between layers in training: the same at all steps of a row."""
        if not self.training or not self.share:
            return []
        joins = [cast(Any, join).width for join in self.joins][:-1]
        return [mask((x_TBX.shape[1], width), self.share, x_TBX) for width in joins]


class IndependentTranslator(RecurrentTranslator):
    """A decoder that never reads what it wrote: given its source, each word of a target is independent.

    The design that fails [MAUSAM "Can you think of a fundamental problem in this design?"]: z(t) = f(z(t-1),
    c(t)) without y(t-1), so that words which fit their places do not fit each other.
    """

    def __init__(self, cell: str, settings: RecurrentTranslatorSettings, vocabulary: PairVocabulary) -> None:
        super().__init__(cell, settings, vocabulary)
        self.scale_words = 0.0  # the vectors of its own words are never seen


class _Looking:
    """Attention of all rows to their sources, for the steps of one pass."""

    def __init__(self, attention: DotAttention, sources: Sources) -> None:
        U, S = sources.keys_USA.shape[:2]
        self.attention, self.kept = attention, (sources.keys_USA, sources.values_USD)
        self.sharing = Sharing(sources.rows_B, U)
        device = sources.keys_USA.device
        real_US = torch.arange(S, device=device) < sources.lengths_U[:, None]
        self.bias_U1S = torch.zeros(U, 1, S, device=device).masked_fill_(~real_US[:, None], -torch.inf)
        if (empty_U := sources.lengths_U == 0).any():
            self.bias_U1S[empty_U] = 0.0  # a softmax over nothing is NaN

    def at(self, z_BH: Tensor, seen_BS: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``c_BD`` and ``weights_BS``; ``seen_BS`` has columns under coverage only."""
        z_URH = self.sharing.group(z_BH[:, None, None])[:, 0]
        seen = [self.sharing.group(seen_BS[:, None, None])[:, 0]] if seen_BS.shape[1] else []
        c_URD, weights_URS = self.attention(z_URH, self.kept, self.bias_U1S, *seen)
        c_BD, weights_BS = (self.sharing.ungroup(part[:, None])[:, 0, 0] for part in (c_URD, weights_URS))
        return c_BD, weights_BS


def _readout(name: str, inputs: int, hidden: int, outputs: int) -> nn.Module:
    """Return the slide's MLP^out, or one matrix."""
    if name == "linear":
        return nn.Linear(inputs, outputs)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def _looked(state: DecoderState, weights_BS: Tensor) -> DecoderState:
    """Return the state after it has looked; under coverage it remembers where."""
    if not state.seen_BS.shape[1]:
        return state._replace(weights_BS=weights_BS)
    again_B = state.again_B + torch.minimum(weights_BS, state.seen_BS).sum(dim=-1)
    return state._replace(weights_BS=weights_BS, seen_BS=state.seen_BS + weights_BS, again_B=again_B)


def _kept(now: DecoderState, before: DecoderState, goes_on_B: Tensor) -> DecoderState:
    """Return the new state in the rows that go on."""
    goes_on_B1 = goes_on_B[:, None]
    layers = tuple(
        tuple(torch.where(goes_on_B1, new, old) for new, old in zip(one, other, strict=True))
        for one, other in zip(now.layers, before.layers, strict=True)
    )
    fed_BX, weights_BS, seen_BS = (
        torch.where(goes_on_B1, new, old) for new, old in zip(now[1:4], before[1:4], strict=True)
    )
    again_B = torch.where(goes_on_B, now.again_B, before.again_B)
    return DecoderState(layers, fed_BX, weights_BS, seen_BS, again_B, now.sources)
