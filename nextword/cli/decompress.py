"""``nextword decompress``: restore what `compress` coded."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, OutFile, RunName
from nextword.core.display import show_size


def decompress(
    run: RunName,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The compressed file.")],
    out: OutFile = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Restore a file that `compress` made with the same run."""
    from nextword.api import decompress as decompressing

    done = decompressing.decompress_file(run, file, out)
    show.as_json(done) if json else show.result(done["path"])
    show.note(f"{show_size(done['compressed'])} became {show_size(done['bytes'])}")
