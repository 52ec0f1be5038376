"""``nextword compress`` and ``decompress``: the proof that bits per byte means what it says."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, OutFile, RunName
from nextword.core.sizes import show_size

File = Annotated[str, typer.Argument(metavar="FILE", help="The file.")]


def compress(run: RunName, file: File, out: OutFile = None, debug: Debug = False, json: Json = False) -> None:
    """Code a file with a model; `decompress` gives it back byte for byte."""
    from nextword.api import verbs

    done = verbs.compress_file(run, file, out)
    show.as_json(done) if json else show.result(done["path"])
    rate = f", {done['bits_per_byte']:.3f} bits per byte" if done["bytes"] else ""
    show.note(f"{show_size(done['bytes'])} became {show_size(done['compressed'])}{rate}")
    show.next_command(f"nextword decompress {run} {done['path']} -o {done['file']}.back")


def decompress(
    run: RunName, file: File, out: OutFile = None, debug: Debug = False, json: Json = False
) -> None:
    """Give back a file that `compress` coded with the same run."""
    from nextword.api import verbs

    done = verbs.decompress_file(run, file, out)
    show.as_json(done) if json else show.result(done["path"])
    show.note(f"{show_size(done['compressed'])} became {show_size(done['bytes'])}")
