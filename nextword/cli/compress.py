"""``nextword compress``: a file coded with a model."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, OutFile, RunName
from nextword.core.display import show_size


def compress(
    run: RunName,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to compress.")],
    out: OutFile = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Compress a file with a model. `decompress` restores it byte for byte."""
    from nextword.api import compress as compressing

    done = compressing.compress_file(run, file, out)
    show.as_json(done) if json else show.result(done["path"])
    rate = f", {done['bits_per_byte']:.3f} bits per byte" if done["bytes"] else ""
    show.note(f"{show_size(done['bytes'])} became {show_size(done['compressed'])}{rate}")
    show.next_command(f"nextword decompress {run} {done['path']} -o {done['file']}.back")
