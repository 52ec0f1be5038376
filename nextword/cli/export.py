"""``nextword export``: a run as another program's file."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, RunName


class To(StrEnum):
    """Formats that can be written."""

    arpa = "arpa"
    ctranslate2 = "ctranslate2"


def export(
    run: RunName,
    to: Annotated[To, typer.Option(help="The format.")],
    out: Annotated[
        str, typer.Option(metavar="FILE", help="The file to write (.gz compresses it), or the folder.")
    ],
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Write a run as a file for other programs, such as KenLM."""
    from nextword.api import export as exporting

    done = show.follow(exporting.exporting(run, to.value, out))
    show.as_json(done) if json else show.result(done["path"])
