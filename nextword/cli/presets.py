"""``nextword presets``: the models that ``--model`` takes."""

from __future__ import annotations

from nextword.cli import show
from nextword.cli.options import Debug, Json

_SHOWN = {"name": "name", "family": "family", "summary": "summary", "changes": "settings"}


def presets(debug: Debug = False, json: Json = False) -> None:
    """List the models that `--model` takes."""
    from nextword.api import presets as listed

    rows = listed.presets()
    if json:
        show.as_json(rows)
    else:
        show.table([{shown: row[key] for key, shown in _SHOWN.items()} for row in rows])
    bases = sorted({f"{row['name'].partition('/')[0]}/ to {row['base']}" for row in rows if row["base"]})
    show.note(f"settings are changes: {', '.join(bases)}, all others to the family's defaults")
    show.note(
        "models of other tasks: nextword list tagger (--task tag), nextword list classifier (--task classify)"
    )
