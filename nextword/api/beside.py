"""What a run writes with: other runs beside it (``--with``), a draft (``--draft``), products in int8."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nextword.api.opened import Name, Opened, opened
from nextword.core.contracts import LanguageModel, NetworkModel, Tokenizer
from nextword.core.errors import ConfigError
from nextword.decode.speculate import Draft
from nextword.mixtures.ensemble import Ensemble
from nextword.mixtures.mixture import Mixture

PRECISIONS = ("fp32", "int8")


@dataclass(frozen=True)
class Beside:
    """What was asked for."""

    runs: tuple[Name, ...] = ()  # their probabilities are averaged with the run's
    draft: Name | None = None
    precision: str = "fp32"


ALONE = Beside()


def names_in(given: Name | Sequence[Name] | None) -> tuple[Name, ...]:
    """Return names as a tuple, from one, several or none."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str | os.PathLike) else tuple(given)


def changed(found: Opened, asked: Beside) -> tuple[Opened, list[str]]:
    """Return a run as it is to be used, and sentences on what could not be done; the run itself stays."""
    if not asked.runs and asked.precision == "fp32":
        return found, []
    if asked.precision not in PRECISIONS:
        raise ConfigError(f"'precision' is '{asked.precision}'; it must be one of: {', '.join(PRECISIONS)}")
    others = [opened(name) for name in asked.runs]
    for other in others:
        check_tokenizers(found, other, "another run")
    models, notes = [found.trained.model, *(other.trained.model for other in others)], []
    if asked.precision == "int8":
        models[0] = copy.deepcopy(models[0])
        notes = [note for model in models if (note := _in_int8(found, model))]
    model = models[0] if len(models) == 1 else Ensemble(models)
    return Opened(replace(found.trained, model=model)), list(dict.fromkeys(notes))


def draft_of(run: Opened, asked: Beside, tokens: int) -> Draft | None:
    """Return the run that drafts, if there is one; it drafts this many tokens at a time."""
    if asked.draft is None:
        return None
    found = opened(asked.draft)
    check_tokenizers(run, found, "a draft")
    return Draft(found.trained.model, tokens)


def shown(draft: Draft) -> str:
    """Say in one sentence how well a draft served."""
    return (
        f"draft: {draft.rate:.0%} of {draft.drafted:,} drafted tokens were kept, "
        f"{draft.written / max(1, draft.rounds):.2f} tokens for each pass of the model"
    )


def check_tokenizers(run: Opened, other: Opened, noun: str) -> None:
    """Raise an error where the ids of two runs do not mean the same, on the side that is written."""
    if not isinstance(other.trained.model, LanguageModel):
        raise ConfigError(f"'{other.place}' writes no text, so that it cannot be {noun} of '{run.place}'")
    if _bytes(_written(run)) != _bytes(_written(other)):
        raise ConfigError(
            f"the tokenizers of '{run.place}' and '{other.place}' differ, so that the second cannot be "
            f"{noun} of the first; train it with the first one's tokenizer (--tokenizer FILE)"
        )


def _written(run: Opened) -> Tokenizer:
    """Return the tokenizer of what a run writes: a translation run has one for each side."""
    vocabulary: Any = run.trained.vocabulary
    found: Tokenizer = vocabulary if isinstance(vocabulary, Tokenizer) else vocabulary.target
    return found


def _bytes(tokenizer: Tokenizer) -> bytes:
    with tempfile.TemporaryDirectory(prefix="nextword-") as folder:
        path = Path(folder) / "tokenizer.json"
        tokenizer.save(str(path))
        return path.read_bytes()


def _in_int8(run: Opened, model: Any) -> str:
    """Let the networks of a model multiply in int8; return a sentence where one cannot."""
    if isinstance(model, Mixture):
        return next((said for part in model.models if (said := _in_int8(run, part))), "")
    if not isinstance(model, NetworkModel):
        return f"'{run.place}' or a part of it has no network, which stays as it is under --precision int8"
    from nextword.models.int8 import use_int8  # needs torch

    return use_int8(model.network)
