"""``nextword data``: list, copy and check texts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from nextword.cli import show
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


class Part(StrEnum):
    """Which sources are kept for testing."""

    spread = "spread"
    last = "last"


@app.command("pairs")
def pairs(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="stories, trees, numbered-trees, letters or turns.")
    ],
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files or corpora of that shape.")],
    out: Annotated[str, typer.Option("-o", "--out", metavar="FILE.tsv", help="Where the pairs are written.")],
    test: Annotated[
        str | None, typer.Option(metavar="FILE.tsv", help="Where pairs kept for testing are written.")
    ] = None,
    share: Annotated[
        float, typer.Option(min=0.001, max=0.999, help="The share of the sources for --test.")
    ] = 0.1,
    part: Annotated[
        Part, typer.Option(help="Which sources --test gets: spread over the files, or the last ones.")
    ] = Part.spread,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Turn stories, trees, sounds or dialogues into pairs.

    They are what the task translate learns from.
    """
    from nextword.api import data

    done = data.pairs(recipe, files, out, test, share, part.value)
    show.as_json(done) if json else show.result(_summary(done))


def _summary(done: dict[str, Any]) -> str:
    places = [(done["path"], done["pairs"]), (done.get("test"), done.get("test_pairs"))]
    return "\n".join(f"{path}: {count:,} pairs" for path, count in places if path is not None)


@app.command("check")
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files, folders or corpora.")],
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Check a text before training, with advice.

    Lines, words, duplicates, the longest line, unseen words, encoding problems.
    """
    from nextword.api import data

    report = show.follow(data.checking(files, sets or ()))
    show.as_json(report.to_json()) if json else show.result(str(report))
