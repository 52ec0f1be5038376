"""Who is compared, and on what: every setting is checked and the text is split before anything is trained.

One split for all: the end of the text is held out, or a text of its own is given.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nextword.core.errors import ConfigError
from nextword.data.corpora import DEFAULT
from nextword.train.auto import choose
from nextword.train.holdout import hold_out
from nextword.train.settings import RunSettings, plan
from nextword.train.source import Names, Source

# What is compared where nothing is named: every smoothing, the default last.
MODELS = (
    "ngram-mle", "ngram-add", "ngram-laplace", "ngram-backoff", "ngram-katz", "ngram-stupid",
    "ngram-witten-bell", "ngram-absolute", "ngram-kneser-ney", "ngram", "ngram-good-turing",
)  # fmt: skip


@dataclass(frozen=True)
class Contest:
    """The models with their settings, the two texts, and where results go."""

    entries: tuple[RunSettings, ...]
    train: Source
    held: Source
    data: tuple[str, ...]  # how the text was named
    valid: tuple[str, ...]
    digest: str  # of both texts
    out: Path
    minutes: float | None = None


def enter(
    data: Names = (),
    models: Sequence[str] = (),
    *,
    valid: Names = (),
    tokenizer: str | None = None,
    sets: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    minutes: float | None = None,
) -> Contest:
    """Check everything that was asked for; the text is read once, to find the split and its hash."""
    if minutes is not None and not minutes > 0:
        raise ConfigError(f"'minutes' is {minutes}; it must be more than 0")
    named = tuple(os.fspath(name) for name in data) or (DEFAULT,)
    apart = tuple(os.fspath(name) for name in valid)
    given = dict(sets or {})
    entries = tuple(plan(name, tokenizer=tokenizer, sets=given) for name in _names(models, given))
    settings = entries[0].data
    if apart:
        train, held = Source.for_training(named, settings), Source.for_reading(apart, settings)
        if (both := train.shares_a_file_with(held)) is not None:
            raise ConfigError(f"{both} is in the training text and in --valid; new text must not be known")
        train.keep()
        held.keep()
    else:
        train, held = hold_out(named, settings)
    digest = train.read_through() + held.read_through()
    return Contest(entries, train, held, named, apart, digest, _folder(out, named[0]), minutes)


def _names(models: Sequence[str], sets: Mapping[str, Any]) -> list[str]:
    """The models that were named, each once; `auto` is the one it chooses."""
    named = (name.strip() for name in models if name.strip())
    chosen = (choose(sets).model if name == "auto" else name for name in named)
    return list(dict.fromkeys(chosen)) or list(MODELS)


def _folder(out: str | os.PathLike[str] | None, data: str) -> Path:
    """``compare/DATA`` unless it is named, so that the same question finds its own results again."""
    if out is not None:
        return Path(out)
    stem = os.path.basename(data.rstrip("/")).partition(".")[0]
    return Path("compare") / ("".join(c if c.isalnum() else "-" for c in stem).strip("-") or "text")


def split_note(contest: Contest) -> str:
    """How the text was split, in one phrase."""
    if contest.valid:
        return f"trained on {_list(contest.data)}, measured on {_list(contest.valid)}"
    share = contest.entries[0].data.hold_out
    return f"trained on {_list(contest.data)} without its last {share:.0%}, measured on these"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
