"""What words' vectors and features are multiplied by, so that few steps of AdamW teach much.

√E on the way in: Vaswani et al. 2017. On the way out: a step of AdamW is the same for small and large
numbers, so features within [-1, 1] before small vectors would need many steps to move the scores.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import Field

from nextword.models.family import NeuralSettings


class ScaledSettings(NeuralSettings):
    """Settings of families whose words and features are scaled."""

    scaling: Literal["quick", "none"] = Field(
        "quick", description="quick: words and features scaled for few steps of adamw; none: for sgd"
    )
    feature_scale: ClassVar[float] = 45.0  # of "quick", where a word's vector is a single number

    def scales(self, embedding: int) -> tuple[float, float]:
        """For words and features; vectors of more numbers need less."""
        if self.scaling == "none":
            return 1.0, 1.0
        return math.sqrt(embedding), self.feature_scale / math.sqrt(embedding)
