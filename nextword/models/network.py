"""What a neural family builds, and how it becomes a language model on the one contract.

A network reads tokens and returns a feature vector after each: all it knows of the text so far. The head
turns a feature into the distribution of the next token [IITD-1 "A fixed-window neural Language Model", "A RNN
Language Model": h(t), then ŷ(t) = softmax(U h(t) + b)].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from nextword.blocks.packed import pack
from nextword.blocks.states import join_rows, take_rows
from nextword.core.contracts import START, Array, State


class Head(Protocol):
    """Features to distributions: the slot "head" (blocks/heads.py). Sums and logarithms are in float32."""

    def prepare(self, counts_V: Tensor) -> None:
        """Use the counts of the tokens before training (output bias, clusters by frequency)."""
        ...

    def log_probs(self, features_BD: Tensor) -> Tensor:
        """Return ``logp_BV`` of every next token; START, which is never predicted, has -inf."""
        ...

    def score(self, features_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Return ``logp_N`` of these tokens, in bounded memory."""
        ...

    def loss(self, features_ND: Tensor, targets_N: Tensor, smoothing: float = 0.0) -> Tensor:
        """Return the sum of -log p of the targets, differentiable; with label smoothing if asked."""
        ...


@runtime_checkable
class MassRemover(Protocol):
    """A head that may give START and UNKNOWN a share in training, which is removed when it is used."""

    removes_mass: bool

    def removed_mass(self, features_ND: Tensor) -> Tensor:
        """Return the share that is removed after each feature."""
        ...


class Network(nn.Module):
    """Tokens in, features out. A subclass sets the attributes and has `start` and `read` (forward pass)."""

    kind: ClassVar[str] = "network"  # by which probes know it: recurrent, transformer, window
    outer: ClassVar[tuple[str, ...]] = ("embedding", "head")  # parts whose size follows from the vocabulary
    vocab_size: int
    width: int  # D, the size of a feature
    context: int | None  # how many tokens before a token are seen; None: no limit
    carries: bool  # the state is carried from line to line within a document
    head: nn.Module  # a `Head`
    fixed = False  # the weights are loaded and will not be trained

    def start(self, batch: int, source: Any = None) -> State:
        """Begin rows that have read nothing: (nested) tuples of tensors, the batch first in each.

        ``source``: what an encoder reads, one for each row; a language model calls `refuse_source`.
        """
        raise NotImplementedError

    def read(self, ids_BT: Tensor, state: State, lengths_B: Tensor | None = None) -> tuple[Tensor, State]:
        """Run the forward pass: ``features_BTD``, one after each token, and the state after each row's last.

        ``lengths_B``: how many tokens of each row are real (None: all). What stands past them is ignored, and
        its features are any finite numbers. A length of 0 leaves a row's state as it was.
        """
        raise NotImplementedError

    def reorder(self, state: State, rows_B: Tensor) -> State:
        """Take these rows of a state, in this order; rows may repeat."""
        return take_rows(state, rows_B)

    def join(self, states: Sequence[State]) -> State:
        """Put the rows of several states one after another, whatever each has read."""
        return join_rows(states)

    def branch(self, state: State) -> State:
        """Prepare for a search, whose rows are taken again at every step; only its newest state is used."""
        return state

    def rewind(self, before: State, after: State, read: int, counts_B: Tensor) -> State | None:
        """Return the state after the first of ``read`` tokens of each row, from those before and after all.

        None: it cannot be made of them, and the tokens are read again. ``after`` is not used any more.
        """
        return None

    def prepare(self, counts_V: Tensor) -> None:
        """Use the counts of the tokens before training: in the head, and in an embedding that needs them."""
        parts: list[Any] = [getattr(self, "embedding", None), self.head]
        for part in parts:
            if hasattr(part, "prepare"):
                part.prepare(counts_V)

    def foresee(self, features_BTD: Tensor, targets_BT: Tensor, resets_BT: Array | None) -> None:
        """Add losses of tokens further ahead, where a network predicts them; most do not."""

    def model(self) -> Any:
        """Return the network as what is used of it: a language model, unless it predicts something else."""
        return NeuralLanguageModel(self)

    def ready(self) -> None:
        """Prepare for reading token by token, where the weights are fixed: pack matrices, once."""
        if not self.__dict__.get("_is_ready"):
            self.lay_out()
            self.__dict__["_is_ready"] = True

    def lay_out(self) -> None:
        """Change how the weights lie in memory."""
        pack(self)

    def start_feature(self, batch: int) -> Tensor:
        """Return the feature of rows that have read nothing."""
        return torch.zeros(batch, self.width, dtype=self.dtype, device=self.device)

    @property
    def dtype(self) -> torch.dtype:
        """Return the type of the weights."""
        return self._weight().dtype

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return self._weight().device

    def _weight(self) -> nn.Parameter:
        """Return the first weight; where weights are fixed it is remembered, since looking for it is slow."""
        found: nn.Parameter | None = self.__dict__.get("_first")
        if found is None:
            found = next(self.parameters())
            if self.fixed:
                self.__dict__["_first"] = found
        return found


def device_of(network: nn.Module) -> torch.device:
    """Return the device of the weights of a network."""
    return next(network.parameters()).device


class NeuralState(NamedTuple):
    """Everything read: the network's own state, and its last feature, which predicts the next token."""

    inner: Any
    feature_BD: Tensor


class Attempt(NamedTuple):
    """Tokens that were read after a state, what the network made of them, and the features after each."""

    ids_BT: Tensor
    state: NeuralState
    inner: Any
    features_BTD: Tensor


class NeuralLanguageModel:
    """A network on the contract of `core.contracts`; also a `Carrier` where its network carries."""

    is_probability = True

    def __init__(self, network: Network) -> None:
        self.network = network.eval()
        self.vocab_size = network.vocab_size
        if network.carries:  # only then is it a `Carrier`
            self.carry = _same

    @property
    def context(self) -> int | None:
        """Return how many tokens before a token are seen; None: no limit."""
        return self.network.context

    @property
    def parameters(self) -> int:
        """Return the number of learned weights; tied ones count once."""
        return sum(weight.numel() for weight in self.network.parameters())

    def ready(self) -> None:
        """Prepare for many steps: the weights' layout may change, and with it the last digit of a number."""
        if self.network.fixed:
            self.network.ready()

    @torch.inference_mode()
    def start(self, batch: int, source: Any = None, begin: bool = True) -> NeuralState:
        """Return rows that have read START, or nothing."""
        state = NeuralState(self.network.start(batch, source), self.network.start_feature(batch))
        starts_B1 = torch.full((batch, 1), START, device=self.network.device)
        return self._read(starts_B1, state) if begin else state

    @torch.inference_mode()
    def next(self, state: NeuralState) -> Tensor:
        """Return log p of every next token."""
        return self._head.log_probs(state.feature_BD)

    @torch.inference_mode()
    def step(self, ids_B: Array, state: NeuralState) -> tuple[Tensor, NeuralState]:
        """Read one token in each row."""
        state = self._read(self._ids(ids_B)[:, None], state)
        return self.next(state), state

    @torch.inference_mode()
    def score(
        self, ids_BT: Array, lengths_B: Array, state: NeuralState | None = None
    ) -> tuple[Tensor, NeuralState]:
        """Score all positions at once: the feature before each token gives its probability."""
        ids_BT, lengths_B = self._ids(ids_BT), self._ids(lengths_B)
        before_BTD, after = self.read(ids_BT, lengths_B, state)
        return self.score_features(before_BTD, ids_BT, lengths_B), after

    @torch.inference_mode()
    def read(
        self, ids_BT: Array, lengths_B: Array, state: NeuralState | None = None
    ) -> tuple[Tensor, NeuralState]:
        """Run the forward pass: ``before_BTD``, the feature before each token, and the state after the last.

        Memories use these features as keys. Past a row's length they are any finite numbers.
        """
        ids_BT, lengths_B = self._ids(ids_BT), self._ids(lengths_B)
        B, T = ids_BT.shape
        state = self.start(B) if state is None else state
        if T == 0:
            return state.feature_BD[:, None][:, :0], state
        is_full = bool((lengths_B == T).all())
        features_BTD, inner = self.network.read(ids_BT, state.inner, None if is_full else lengths_B)
        before_BTD = torch.cat([state.feature_BD[:, None], features_BTD[:, :-1]], dim=1)
        last_BD = features_BTD[torch.arange(B), (lengths_B - 1).clamp(min=0)]
        feature_BD = torch.where(lengths_B[:, None] > 0, last_BD, state.feature_BD)
        return before_BTD, NeuralState(inner, feature_BD)

    @torch.inference_mode()
    def score_features(self, before_BTD: Tensor, ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Return ``logp_BT`` of the tokens from the features before them; 0 past a row's length."""
        real_BT = torch.arange(ids_BT.shape[1], device=ids_BT.device) < lengths_B[:, None]
        logp_BT = torch.zeros(*ids_BT.shape, device=ids_BT.device)
        logp_BT[real_BT] = self._head.score(before_BTD[real_BT], ids_BT[real_BT])
        return logp_BT

    @torch.inference_mode()
    def distributions(
        self, ids_BT: Array, lengths_B: Array, state: NeuralState | None = None
    ) -> tuple[Tensor, NeuralState]:
        """Return ``logp_NV``: what could have come at the place of each real token, row by row."""
        ids_BT, lengths_B = self._ids(ids_BT), self._ids(lengths_B)
        before_BTD, after = self.read(ids_BT, lengths_B, state)
        real_BT = torch.arange(ids_BT.shape[1], device=ids_BT.device) < lengths_B[:, None]
        return self._head.log_probs(before_BTD[real_BT]), after

    @torch.inference_mode()
    def attempt(self, ids_BT: Array, state: NeuralState) -> tuple[Tensor, Attempt]:
        """Read tokens of which only the first may be kept; return ``logp_BTV`` after each."""
        ids_BT = self._ids(ids_BT)
        features_BTD, inner = self.network.read(ids_BT, state.inner)
        logp_NV = self._head.log_probs(features_BTD.flatten(0, 1))
        return logp_NV.view(*ids_BT.shape, -1), Attempt(ids_BT, state, inner, features_BTD)

    @torch.inference_mode()
    def keep(self, attempt: Attempt, counts_B: Array) -> NeuralState:
        """Return the state after the first tokens of each row."""
        counts_B, T = self._ids(counts_B), attempt.ids_BT.shape[1]
        rows_B = torch.arange(len(counts_B), device=counts_B.device)
        feature_BD = attempt.features_BTD[rows_B, counts_B - 1]
        if bool((counts_B == T).all()):
            return NeuralState(attempt.inner, feature_BD)
        inner = self.network.rewind(attempt.state.inner, attempt.inner, T, counts_B)
        if inner is None:
            inner = self.network.read(attempt.ids_BT, attempt.state.inner, counts_B)[1]
        return NeuralState(inner, feature_BD)

    @torch.inference_mode()
    def reorder(self, state: NeuralState, rows_B: Array) -> NeuralState:
        """Keep these rows."""
        rows_B = self._ids(rows_B)
        return NeuralState(self.network.reorder(state.inner, rows_B), state.feature_BD[rows_B])

    @torch.inference_mode()
    def branch(self, state: NeuralState) -> NeuralState:
        """Prepare for a search: only the newest of the states that follow is used."""
        return NeuralState(self.network.branch(state.inner), state.feature_BD)

    def rows(self, state: NeuralState) -> int:
        """Return how many rows a state has."""
        return len(state.feature_BD)

    @torch.inference_mode()
    def join(self, states: Sequence[NeuralState]) -> NeuralState:
        """Return the rows of several states in one."""
        inner = self.network.join([state.inner for state in states])
        return NeuralState(inner, join_rows([state.feature_BD for state in states]))

    @property
    def _head(self) -> Head:
        return cast(Head, self.network.head)

    @contextmanager
    def deterministic(self) -> Iterator[None]:
        """Make the same tokens give the same numbers to the last bit, in any process on this machine.

        On a CPU one thread is enough: the order of summation is then fixed.
        """
        threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        torch.set_num_threads(1)
        if self.network.device.type != "cpu":
            torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            if self.network.device.type != "cpu":
                torch.use_deterministic_algorithms(strict)

    def _read(self, ids_B1: Tensor, state: NeuralState) -> NeuralState:
        features_B1D, inner = self.network.read(ids_B1, state.inner)
        return NeuralState(inner, features_B1D[:, -1])

    def _ids(self, ids: Array) -> Tensor:
        return torch.as_tensor(np.asarray(ids) if not isinstance(ids, Tensor) else ids).to(
            self.network.device, torch.int64
        )


def _same(state: State) -> State:
    """Continue with the next line after END."""
    return state


@runtime_checkable
class Resettable(Protocol):
    """A network whose state has a fixed size: rows of it can be reset and carried on."""

    def reset(self, state: State, rows_B: Tensor) -> State:
        """Return the state with these rows as at the beginning."""
        ...


def is_recurrent(network: Network) -> bool:
    """Tell whether the state has a fixed size and can be reset and carried on."""
    return isinstance(network, Resettable)
