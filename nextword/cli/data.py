"""``nextword data``: list, copy and check texts."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import progress, show
from nextword.cli.options import Debug, Json, Sets

app = typer.Typer(help="List, copy and check texts.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_corpora(debug: Debug = False, json: Json = False) -> None:
    """List the corpora that can be named instead of a file."""
    from nextword.api import data

    rows = data.listed()
    show.as_json(rows) if json else show.table(rows)


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A corpus.")],
    out: Annotated[str, typer.Option("-o", "--out", metavar="DIR", help="The folder to copy its files to.")],
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Copy the files of a corpus into a folder."""
    from nextword.api import data

    done = data.get(name, out)
    show.as_json(done) if json else show.result(done["path"])


@app.command("check")
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files, folders or corpora.")],
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Check a text: lines, words, duplicates, longest line, unseen words, encoding problems, with advice."""
    from nextword.api import data

    report = progress.follow(data.checking(files, sets or ()))
    show.as_json(report.to_json()) if json else show.result(str(report))
