"""The text of an experiment: the one a run was trained on, or the embedded corpus; its end is held out."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.core.contracts import START, LanguageModel, Tokenizer
from nextword.core.errors import DataError, RunError
from nextword.core.events import Event, Stage
from nextword.data.corpora import DEFAULT
from nextword.data.encode import encode
from nextword.data.paths import STDIN
from nextword.data.settings import DataSettings
from nextword.data.split import Part, hold_out, whole_names
from nextword.ngram.model import NgramModel
from nextword.runs import saved
from nextword.runs.saved import Trained
from nextword.runs.settings import plan

Array = np.ndarray[Any, np.dtype[Any]]
ORDER = 5
QUICK = 30_000  # tokens of a quick look


@dataclass(frozen=True)
class Material:
    """A text as ids in two parts, and the run it belongs to, if there is one."""

    name: str
    tokenizer: Tokenizer
    ids: Array
    held: Array
    bytes: int  # of the training part
    order: int
    run: Trained | None = None

    @property
    def vocab_size(self) -> int:
        """The vocabulary size V, the three specials included."""
        return self.tokenizer.vocab_size

    @property
    def about(self) -> str:
        """What the experiment was run on, in one phrase."""
        return (
            f"{self.name}: {len(self.ids):,} tokens to learn from, {len(self.held):,} held out, "
            f"{self.vocab_size:,} {self.tokenizer.name}"
        )


def prepare(run: str | None, max_vocab: int = 0, most: int = 0) -> Generator[Event, None, Material]:
    """Read and encode the text; a run's own settings are used for it, else `max_vocab` words (0: all).

    ``most``: only the first this many tokens (0: all).
    """
    trained = None if run is None else saved.load(run)
    settings = plan("ngram", sets={"text.max_vocab": max_vocab}) if trained is None else trained.settings
    yield Stage("hold out the end of the text")
    names, train, held = _parts(run, trained, settings.data)
    text = yield from encode(train, settings.text, settings.data)
    pieces = [np.asarray(piece.ids) for piece in text.tokenizer.encode_blocks(held.blocks())]
    model = None if trained is None else trained.model
    order = model.order if isinstance(model, NgramModel) else ORDER
    return Material(
        ", ".join(names),
        text.tokenizer,
        _first(np.asarray(text.ids), most),
        _first(np.concatenate(pieces), most // 4),
        text.facts.bytes,
        order,
        trained,
    )


def _first(ids: Array, most: int) -> Array:
    """Return the first whole sequences, about this many tokens; 0: all."""
    if not most or len(ids) <= most:
        return ids
    starts = np.flatnonzero(ids[: most + 1] == START)
    part: Array = ids[: int(starts[-1])] if len(starts) > 1 else ids[:most]
    return part


def end_of_text(run: str, trained: Trained, least: int) -> Generator[Event, None, Array]:
    """Read the end of a run's text as its own tokens, at least this many."""
    yield Stage("read the end of the run's text")
    _, _, held = _parts(run, trained, trained.settings.data)
    ids: Array = np.concatenate(
        [np.asarray(piece.ids, np.int64) for piece in trained.tokenizer.encode_blocks(held.blocks())]
    )
    ids = ids[ids != START]  # END separates what is read on
    if len(ids) < least:
        raise RunError(
            f"the held-out end of the text of '{run}' has {len(ids):,} tokens, and {least:,} are needed; "
            "use a run that was trained on more text"
        )
    return ids


def _parts(
    run: str | None, trained: Trained | None, settings: DataSettings
) -> tuple[tuple[str, ...], Part, Part]:
    """Return the names of a text, the part to learn from and the part held out."""
    names = (DEFAULT,) if trained is None else whole_names(trained.facts.data.names)
    if trained is not None and (_is_arpa(trained.model) or not names):
        raise RunError(f"'{run}' was imported and has no training text; use a run that was trained here")
    if any(name in STDIN for name in names):
        raise RunError(
            f"'{run}' was trained on standard input, which cannot be read again; train it on a file"
        )
    try:
        return names, *hold_out(names, settings, settings.hold_out or DataSettings().hold_out)
    except DataError as error:
        if trained is None:
            raise
        raise RunError(
            f"the text of the run '{run}' cannot be read again ({error}); train it where the text can be read"
        ) from error


def _is_arpa(model: LanguageModel) -> bool:
    return isinstance(model, NgramModel) and model.smoothing == "arpa"
