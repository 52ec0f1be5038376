"""Settings of the n-gram family. [XMU "n-gram language models", "Laplace smoothing"]"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from nextword.core.errors import ConfigError
from nextword.core.settings import Settings, Slot

LONGEST = 15  # the fast path stores two lengths of an n-gram in one byte


class NgramSettings(Settings):
    """The length of the n-grams, and the treatment of unseen ones."""

    order: int = Field(5, ge=1, le=LONGEST, description="n: the longest n-gram counted")
    smoothing: Slot["smoothing"] = Field(
        "modified-kneser-ney", description="how unseen n-grams get their probability"
    )
    vocabulary: Literal["auto", "open", "closed"] = Field(
        "auto", description="open: UNKNOWN has a probability; auto: open unless the tokenizer never needs it"
    )
    delta: float = Field(1.0, ge=0.0, description="add: added to every count")
    eps: list[float] | float = Field(
        1.0,
        description="laplace: weight of the lower distribution, one number or one per order; inf is allowed",
    )
    alpha: float = Field(0.4, gt=0.0, le=1.0, description="stupid: factor of the score at each backoff step")
    katz_limit: int = Field(5, ge=1, le=50, description="katz: counts above this are not discounted")
    discounts: list[float] = Field(
        [0.5, 1.0, 1.5],
        description="Kneser-Ney: of counts 1, 2, 3 and more, if the text is too small to estimate them",
    )
    unknown: Literal["share", "good-turing"] = Field(
        "share",
        description="probability of an unknown word: an equal share of the discounted mass, as in lmplz, "
        "or the Good-Turing estimate of new words",
    )
    prune: list[int] | int = Field(
        0,
        description="drop n-grams with at most this count, one number or one per order (the first must be 0)",
    )
    prune_entropy: float = Field(
        0.0,
        ge=0.0,
        description="drop n-grams whose removal changes perplexity by less than this share (Stolcke 1998)",
    )
    bits: int = Field(
        0,
        ge=0,
        le=8,
        description="0, or 4 to 8: store each probability in this many bits, as KenLM's quantized tries do",
    )
    kenlm_compat: bool = Field(
        False, description="reproduce lmplz to the last digit, including its counting quirk"
    )

    @field_validator("eps")
    @classmethod
    def _not_negative(cls, eps: list[float] | float) -> list[float] | float:
        for value in eps if isinstance(eps, list) else [eps]:
            if not value >= 0:
                raise ValueError("must be 0 or more, or inf")
        return eps

    @field_validator("discounts")
    @classmethod
    def _within_counts(cls, discounts: list[float]) -> list[float]:
        if len(discounts) != 3 or not all(0 <= value <= k for k, value in enumerate(discounts, start=1)):
            raise ValueError(
                "must be three numbers: of count 1 from 0 to 1, of 2 from 0 to 2, of 3 from 0 to 3"
            )
        return discounts

    @field_validator("bits")
    @classmethod
    def _none_or_some(cls, bits: int) -> int:
        if 0 < bits < 4:
            raise ValueError("must be 0 (not quantized) or 4 to 8")
        return bits

    @field_validator("prune")
    @classmethod
    def _rising(cls, prune: list[int] | int) -> list[int] | int:
        if isinstance(prune, list) and (
            prune[:1] not in ([], [0]) or prune != sorted(prune) or min(prune, default=0) < 0
        ):
            raise ValueError(
                "must start with 0 and must not decrease, since an n-gram is at most as frequent as its parts"
            )
        return prune

    @model_validator(mode="after")
    def _fit_together(self) -> NgramSettings:
        for name in ("eps", "prune"):
            value = getattr(self, name)
            if isinstance(value, list) and len(value) > self.order:
                raise ConfigError(
                    f"'model.{name}' has {len(value)} numbers for 'model.order' {self.order}; "
                    "give at most one per order"
                )
        return self

    def per_order(self, name: str) -> list[float]:
        """Return a setting that is one number or a list, as one number per order."""
        value = getattr(self, name)
        if isinstance(value, list):
            return [float(v) for v in value] + [float(value[-1] if value else 0)] * (self.order - len(value))
        first = 0.0 if name == "prune" else float(value)  # unigrams are never pruned
        return [first] + [float(value)] * (self.order - 1)
