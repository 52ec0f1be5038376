"""The settings of decoding, each with its limits."""

from __future__ import annotations

import secrets

from pydantic import Field, model_validator

from nextword.core.settings import Settings


class DecodeSettings(Settings):
    """How words are chosen and when to stop."""

    decode: str = Field("sample", description="how a word is chosen: greedy, sample or beam")
    max_tokens: int = Field(100, ge=1, le=1_000_000, description="most words to write, END included")
    min_tokens: int = Field(0, ge=0, le=1_000_000, description="fewest words before END may come")
    stop: tuple[str, ...] = Field((), max_length=64, description="texts that end the writing")
    ban: tuple[str, ...] = Field((), max_length=10_000, description="words that are never written")
    no_repeat: int = Field(0, ge=0, le=100, description="no sequence of so many words comes twice (0: may)")
    unknown: bool = Field(False, description="whether the unknown symbol may be written")
    repetition_penalty: float = Field(1.0, ge=1, le=100, description="multiplies log p of words used before")
    temperature: float = Field(1.0, ge=0, le=100, description="sample: divides log p; 0 takes the likeliest")
    top_k: int = Field(0, ge=0, le=100_000_000, description="sample: only the k likeliest words (0: all)")
    top_p: float = Field(1.0, gt=0, le=1, description="sample: only the likeliest words of so much mass")
    min_p: float = Field(0.0, ge=0, le=1, description="sample: only words with this share of the best's p")
    typical: float = Field(1.0, gt=0, le=1, description="sample: the mass of words of typical surprise kept")
    seed: int | None = Field(None, ge=0, lt=2**63, description="sample: seed (none: drawn and noted)")
    samples: int = Field(1, ge=1, le=1_000_000, description="sample: texts for each prompt")
    beam_size: int = Field(4, ge=1, le=4096, description="beam: hypotheses kept")
    length_penalty: float = Field(0.6, ge=0, le=10, description="beam: alpha of ((5 + length) / 6) ^ alpha")
    n_best: int = Field(1, ge=1, le=4096, description="beam: texts for each prompt, at most the beam size")
    batch: int = Field(64, ge=1, le=65_536, description="rows the model works on at once; changes no result")

    @model_validator(mode="after")
    def _fits(self) -> DecodeSettings:
        if self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens is {self.min_tokens}, more than max_tokens {self.max_tokens}")
        if self.n_best > self.beam_size:
            raise ValueError(f"n_best is {self.n_best}, more than beam_size {self.beam_size}")
        if any(not text for text in (*self.stop, *self.ban)):
            raise ValueError("an empty text cannot be a stop text or a banned word; leave it out")
        return self

    def seeded(self) -> DecodeSettings:
        """The same settings with a seed: a new one is drawn where there was none."""
        return self if self.seed is not None else self.model_copy(update={"seed": secrets.randbits(32)})
