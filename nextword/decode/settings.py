"""The settings of decoding, each with its limits."""

from __future__ import annotations

import secrets
from typing import Literal

from pydantic import Field, model_validator

from nextword.core.settings import Settings


class DecodeSettings(Settings):
    """How tokens are chosen and when to stop."""

    decode: str = Field("sample", description="how the next token is chosen: greedy, sample, beam or mbr")
    max_tokens: int = Field(100, ge=1, le=1_000_000, description="maximum number of tokens, END included")
    min_tokens: int = Field(0, ge=0, le=1_000_000, description="minimum number of tokens before END")
    max_ratio: float = Field(
        0.0, ge=0, le=1000, description="tokens for each one of the source, plus 10, at most (0: no limit)"
    )
    min_ratio: float = Field(
        0.0, ge=0, le=1000, description="tokens for each one of the source before END, at least"
    )
    prefix: str = Field("", max_length=100_000, description="what every text begins with")
    stop: tuple[str, ...] = Field((), max_length=64, description="texts that stop generation")
    ban: tuple[str, ...] = Field((), max_length=10_000, description="words that are never generated")
    no_repeat: int = Field(
        0, ge=0, le=100, description="never repeat a sequence of this many tokens (0: allowed)"
    )
    unknown: bool = Field(False, description="whether the unknown symbol may be generated")
    repetition_penalty: float = Field(1.0, ge=1, le=100, description="multiplies log p of tokens used before")
    presence_penalty: float = Field(
        0.0, ge=-100, le=100, description="taken from log p of a token generated before"
    )
    frequency_penalty: float = Field(
        0.0, ge=-100, le=100, description="taken from log p of a token for each time it was generated"
    )
    logit_bias: dict[int, float] = Field(
        {}, max_length=10_000, description="numbers that are added to log p of tokens, by id"
    )
    temperature: float = Field(
        1.0, ge=0, le=100, description="sample: divides log p; 0 takes the most likely token"
    )
    top_k: int = Field(0, ge=0, le=100_000_000, description="sample: only the k most likely tokens (0: all)")
    top_p: float = Field(
        1.0, gt=0, le=1, description="sample: only the most likely tokens, up to this total p"
    )
    min_p: float = Field(
        0.0, ge=0, le=1, description="sample: only tokens with this share of the best token's p"
    )
    typical: float = Field(
        1.0, gt=0, le=1, description="sample: total p of the tokens of typical surprise to keep"
    )
    seed: int | None = Field(
        None, ge=0, lt=2**63, description="sample: seed (none: drawn at random and reported)"
    )
    samples: int = Field(1, ge=1, le=1_000_000, description="sample: texts for each prompt")
    beam_size: int = Field(4, ge=1, le=4096, description="beam: hypotheses kept")
    length_penalty: float = Field(0.6, ge=0, le=10, description="beam: alpha of ((5 + length) / 6) ^ alpha")
    n_best: int = Field(1, ge=1, le=4096, description="beam: texts for each prompt, at most the beam size")
    coverage_penalty: float = Field(
        0.0, ge=0, le=100, description="beam: beta of the sum of log(min(attention to a source token, 1))"
    )
    patience: float = Field(
        1.0, gt=0, le=1000, description="beam: ends when this many times the beam size are finished"
    )
    groups: int = Field(1, ge=1, le=4096, description="beam: groups that differ; divides the beam size")
    diversity: float = Field(
        0.5, ge=0, le=100, description="beam: what a token loses for each use by an earlier group"
    )
    tree: bool = Field(False, description="beam: with --json also every token that was kept on the way")
    candidates: int = Field(32, ge=1, le=4096, description="mbr: texts of which the best is chosen")
    candidates_from: Literal["sample", "beam"] = Field("sample", description="mbr: how the texts are made")
    draft_tokens: int = Field(4, ge=1, le=64, description="with a draft: tokens that it drafts at a time")
    batch: int = Field(64, ge=1, le=65_536, description="rows processed at once; does not change results")

    @model_validator(mode="after")
    def _fits(self) -> DecodeSettings:
        if self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens is {self.min_tokens}, more than max_tokens {self.max_tokens}")
        if self.n_best > self.beam_size and self.decode != "mbr":
            raise ValueError(f"n_best is {self.n_best}, more than beam_size {self.beam_size}")
        if self.n_best > self.candidates and self.decode == "mbr":
            raise ValueError(f"n_best is {self.n_best}, more than candidates {self.candidates}")
        if self.beam_size % self.groups:
            raise ValueError(f"groups is {self.groups}, which does not divide beam_size {self.beam_size}")
        if self.min_ratio > self.max_ratio > 0:
            raise ValueError(f"min_ratio is {self.min_ratio:g}, more than max_ratio {self.max_ratio:g}")
        for index, bias in self.logit_bias.items():
            if index < 0 or not -1000 <= bias <= 1000:
                raise ValueError(f"logit_bias of {index} is {bias:g}; ids are 0 or more, values up to 1000")
        if any(not text for text in (*self.stop, *self.ban)):
            raise ValueError("an empty text cannot be a stop text or a banned word; leave it out")
        return self

    def seeded(self) -> DecodeSettings:
        """Return the same settings with a seed, drawn at random where there was none."""
        return self if self.seed is not None else self.model_copy(update={"seed": secrets.randbits(32)})
