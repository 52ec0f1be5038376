"""How a neural model is trained: the settings ``train`` of every neural family, without torch.

Teacher forcing, mini-batches and SGD are the lectures' [IITD-1 "Training a RNN Language Model"]; the rest
makes training faster or better.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from pydantic import Field, field_validator

from nextword.core.settings import Slot, TrainSettings


class NeuralTrainSettings(TrainSettings):
    """The trainer's settings; a family's own defaults apply where the user sets nothing."""

    steps: int = Field(0, ge=0, description="updates of the weights; 0: from the epochs or the minutes")
    epochs: float = Field(10.0, gt=0, le=1e6, description="times through the text, where steps is 0")
    batch: int = Field(32, ge=1, le=2**20, description="rows B that are read at once")
    length: int = Field(
        0, ge=0, le=2**20, description="positions T of a row; 0: the model's context, else 64"
    )
    batches: Slot["batches", "auto"] = Field(
        "auto",
        description="columns: the state is carried from batch to batch; windows: blocks at random offsets; "
        "sentences: whole short documents; auto: by model and text",
    )
    accumulate: int = Field(1, ge=1, le=2**16, description="batches whose gradients are added for one update")
    optimizer: Slot["optimizer"] = Field(
        "adamw", description="muon: for matrices between hidden layers, adamw for the rest"
    )
    rate: float = Field(2e-3, gt=0, le=1e3, description="highest learning rate")
    weight_decay: float = Field(
        0.01, ge=0, le=10, description="pull of matrices towards zero; none for biases, norms and embeddings"
    )
    betas: tuple[float, float] = Field((0.9, 0.99), description="decay of adamw's means: gradients, squares")
    momentum: float = Field(0.0, ge=0, lt=1, description="of sgd")
    schedule: Slot["schedule"] = Field(
        "cosine",
        description="how the rate falls; sqrt: 1 - sqrt; plateau: when the held-out loss stops improving",
    )
    warmup: float = Field(0.02, ge=0, lt=1, description="first share of the training: the rate rises")
    decay: float = Field(1.0, ge=0, le=1, description="last share of the training: the rate falls to zero")
    plateau: float = Field(0.25, gt=0, lt=1, description="factor on the rate at each plateau")
    clip: float = Field(1.0, ge=0, description="largest norm of a gradient; 0: no limit")
    bptt: str = Field("full", description="gradient through time: full, truncated(k) or random(p)")
    forcing: str = Field(
        "teacher",
        description="what is read: teacher (the text), free (own tokens) or "
        "scheduled(linear|exponential|inverse-sigmoid)",
    )
    feed: Literal["sample", "greedy"] = Field(
        "sample", description="how own tokens are chosen, where they are read"
    )
    smoothing: float = Field(0.0, ge=0, lt=1, description="label smoothing: this share goes to all tokens")
    z_loss: float = Field(
        0.0, ge=0, le=100, description="weight of the squared log-normalizer: keeps scores of tokens near 0"
    )
    unigram: bool = Field(
        True, description="begin with the tokens' frequencies, in the output bias or the embeddings"
    )
    ema: float = Field(0.0, ge=0, lt=1, description="decay of averaged weights; 0: no averaging")
    average: int = Field(
        0, ge=0, le=100, description="at the end, average this many of the best; 0: the best alone"
    )
    patience: int = Field(0, ge=0, description="stop after this many measurements without a gain; 0: never")
    valid_every: int = Field(
        0, ge=0, description="steps between measurements of the held-out text; 0: ten in all"
    )
    valid_tokens: int = Field(
        200_000, ge=0, description="most tokens of the held-out text measured each time; 0: all"
    )
    save_every: int = Field(
        0, ge=0, description="steps between checkpoints; 0: every two minutes, at most 5 % of the time"
    )
    log_every: int = Field(10, ge=1, description="steps between rows of metrics.jsonl")
    on_nan: Literal["stop", "skip"] = Field(
        "stop", description="if the loss is NaN or infinite: stop, or skip the batch and continue"
    )
    precision: Slot["precision", "auto"] = Field(
        "auto", description="of products; auto: what is faster on this machine; sums are always fp32"
    )
    threads: int = Field(0, ge=0, le=4096, description="0: the processors we may use")
    parallel: Literal["auto", "ddp", "fsdp"] = Field(
        "auto",
        description="several processes (torchrun): ddp: each holds all weights; fsdp: each a part; auto: ddp",
    )
    timeout: float = Field(
        600.0, gt=0, le=86_400, description="seconds that several processes wait for each other"
    )

    @property
    def through_time(self) -> Bptt:
        """Return ``bptt``, parsed."""
        return parse_bptt(self.bptt)

    @property
    def reads(self) -> Forcing:
        """Return ``forcing``, parsed."""
        return parse_forcing(self.forcing)

    @field_validator("bptt")
    @classmethod
    def _bptt(cls, text: str) -> str:
        parse_bptt(text)
        return text

    @field_validator("forcing")
    @classmethod
    def _forcing(cls, text: str) -> str:
        parse_forcing(text)
        return text

    @field_validator("betas")
    @classmethod
    def _betas(cls, betas: tuple[float, float]) -> tuple[float, float]:
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError("both must be at least 0 and less than 1, as in [0.9, 0.99]")
        return betas


_CALL = re.compile(r"\s*([a-z-]+)\s*(?:\(([^()]*)\))?\s*")
BPTT = "full, truncated(k) or random(p), as in truncated(35)"
FORCING = "teacher, free or scheduled(linear|exponential|inverse-sigmoid), as in scheduled(linear, 0.5)"


class Bptt(NamedTuple):
    """How far the gradient goes back: a whole row, at most ``chunk`` positions, or a random number."""

    kind: str  # full, truncated, random
    chunk: int | None = None  # truncated: the gradient goes back this many positions at most
    keep: float = 1.0  # random: the probability that it goes back one position more


class Forcing(NamedTuple):
    """What the model reads in training: the text, its own tokens, or more and more of its own."""

    kind: str  # teacher, free, scheduled
    schedule: str = ""
    value: float = 0.0  # the schedule's parameter


# A schedule's parameter where none is given, its limits, and what it is.
SCHEDULES: dict[str, tuple[float, float, float, str]] = {
    "linear": (0.5, 0.0, 1.0, "the share of true tokens at the end, from 0 to 1"),
    "exponential": (0.99, 0.0, 1.0, "the base k of k^i, from 0 to 1"),
    "inverse-sigmoid": (25.0, 1.0, 1000.0, "the k of k / (k + exp(i / k)), from 1 to 1000"),
}


def parse_bptt(text: str) -> Bptt:
    """Parse ``full``, ``truncated(k)`` with k >= 1, or ``random(p)`` with 0 < p <= 1."""
    name, values = _parts(text, BPTT)
    if name == "full" and not values:
        return Bptt("full")
    if name == "truncated" and len(values) == 1:
        number = _number(values[0])
        if number is None or number != int(number) or number < 1:
            raise ValueError("the k of truncated(k) must be a whole number of 1 or more, as in truncated(35)")
        return Bptt("truncated", chunk=int(number))
    if name == "random" and len(values) == 1:
        share = _number(values[0])
        if share is None or not 0 < share <= 1:
            raise ValueError("the p of random(p) must be more than 0 and at most 1, as in random(0.9)")
        return Bptt("random", keep=share)
    raise ValueError(f"it must be {BPTT}")


def parse_forcing(text: str) -> Forcing:
    """Parse ``teacher``, ``free``, ``scheduled(NAME)`` or ``scheduled(NAME, parameter)``."""
    name, values = _parts(text, FORCING)
    if name in ("teacher", "free") and not values:
        return Forcing(name)
    if name != "scheduled" or len(values) > 2:
        raise ValueError(f"it must be {FORCING}")
    schedule = values[0] if values else "linear"
    if schedule not in SCHEDULES:
        raise ValueError(f"unknown schedule '{schedule}'; there are: {', '.join(SCHEDULES)}")
    default, least, most, meaning = SCHEDULES[schedule]
    value = default if len(values) < 2 else _number(values[1])
    if value is None or not least <= value <= most:
        raise ValueError(f"the number of scheduled({schedule}, …) is {meaning}")
    return Forcing("scheduled", schedule, value)


def _parts(text: str, allowed: str) -> tuple[str, list[str]]:
    found = _CALL.fullmatch(text)
    if found is None:
        raise ValueError(f"it must be {allowed}")
    inside = found[2]
    return found[1], [] if inside is None else [part.strip() for part in inside.split(",")]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
