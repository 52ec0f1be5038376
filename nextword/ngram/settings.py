"""Settings of the n-gram family. [XMU "n-gram language models", "Laplace smoothing"]"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from nextword.core.errors import ConfigError
from nextword.core.settings import Settings, Slot

LONGEST = 15  # the fast path keeps two lengths of an n-gram in the halves of one byte


class NgramSettings(Settings):
    """How many words are looked at, and what happens to n-grams that were never seen."""

    order: int = Field(5, ge=1, le=LONGEST, description="n: the longest n-gram counted")
    smoothing: Slot["smoothing"] = Field(
        "modified-kneser-ney", description="where unseen words get their probability from"
    )
    vocabulary: Literal["auto", "open", "closed"] = Field(
        "auto", description="open: unknown words have a probability; auto: open unless the tokenizer has none"
    )
    delta: float = Field(1.0, ge=0.0, description="add: what is added to every count")
    eps: list[float] | float = Field(
        1.0,
        description="laplace: weight of the lower distribution, one number or one per order; inf is allowed",
    )
    alpha: float = Field(
        0.4, gt=0.0, le=1.0, description="stupid: what a score is multiplied by at each step back"
    )
    katz_limit: int = Field(5, ge=1, le=50, description="katz: counts above this are not discounted")
    discounts: list[float] = Field(
        [0.5, 1.0, 1.5],
        min_length=3,
        max_length=3,
        description="Kneser-Ney: used where the data is too small to estimate its own",
    )
    unknown: Literal["share", "good-turing"] = Field(
        "share",
        description="what an unknown word gets: an equal share of what is left, as in lmplz, "
        "or what Good-Turing expects of new words",
    )
    prune: list[int] | int = Field(
        0,
        description="drop n-grams seen at most this often, one number or one per order (the first must be 0)",
    )
    prune_entropy: float = Field(
        0.0,
        ge=0.0,
        description="drop n-grams whose loss changes perplexity by less than this share (Stolcke 1998)",
    )
    kenlm_compat: bool = Field(
        False, description="reproduce lmplz to the last digit, its counting quirk included"
    )

    @field_validator("eps")
    @classmethod
    def _not_negative(cls, eps: list[float] | float) -> list[float] | float:
        for value in eps if isinstance(eps, list) else [eps]:
            if not value >= 0:
                raise ValueError("must be 0 or more, or inf")
        return eps

    @field_validator("prune")
    @classmethod
    def _rising(cls, prune: list[int] | int) -> list[int] | int:
        if isinstance(prune, list) and (
            prune[:1] not in ([], [0]) or prune != sorted(prune) or min(prune, default=0) < 0
        ):
            raise ValueError(
                "must start with 0 and must not fall, since an n-gram is only as frequent as its part"
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
        """A setting that may be one number or a list, as one number for each order."""
        value = getattr(self, name)
        if isinstance(value, list):
            return [float(v) for v in value] + [float(value[-1] if value else 0)] * (self.order - len(value))
        first = 0.0 if name == "prune" else float(value)  # unigrams are never pruned
        return [first] + [float(value)] * (self.order - 1)
