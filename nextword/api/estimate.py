"""What a training run would take: ``nextword train --estimate`` for Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from nextword.api.arguments import checked
from nextword.api.run import Run
from nextword.api.train import estimate as estimated
from nextword.api.train import order_of


@checked
def estimate(
    data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    model: str | None = None,
    task: str | None = None,
    recipe: str | os.PathLike[str] | None = None,
    source: str | os.PathLike[str] | Run | None = None,
    valid: str | os.PathLike[str] | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    minutes: float | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the interface's name
    seed: int | None = None,
    device: str = "auto",
) -> dict[str, Any]:
    """Estimate what `train` with the same arguments would take, ``--estimate`` on the command line.

    >>> nextword.estimate("corpus.txt", model="ngram")["memory"] > 0
    True
    """
    return estimated(
        order_of(data, model, task, recipe, source, valid, tokenizer, minutes, set, seed, device)
    )
