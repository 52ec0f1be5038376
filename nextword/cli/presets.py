"""``nextword presets``: the models that ``--model`` takes."""

from __future__ import annotations

from nextword.cli import show
from nextword.cli.options import Debug, Json


def presets(debug: Debug = False, json: Json = False) -> None:
    """List the models that `--model` takes."""
    from nextword.api import presets as listed

    rows = listed.presets()
    show.as_json(rows) if json else show.table(rows)
    show.note(
        "models of other tasks: nextword list tagger (--task tag), nextword list classifier (--task classify)"
    )
