"""``nextword serve``: runs over HTTP."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, complete_run


def serve(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Runs: folders, or names under runs/. Without one, small models of the embedded corpus.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="The port; 0: any free one.")] = 8000,
    api_key_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A file with the key that clients must send (or set NEXTWORD_API_KEY)."
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen on other addresses than loopback without a key.")
    ] = False,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Serve runs over HTTP, with a page that shows them.

    Completions that also score, chat, vectors, predictions; SIGTERM ends it.
    """
    from nextword.api import serve as serving
    from nextword.core.errors import MissingPart
    from nextword.system import kernels

    kernels.keep_few()
    settings = serving.settings(host, port, api_key_file, insecure)
    folders = serving.find_runs(runs or [])
    try:
        from nextword.server import first
        from nextword.server.models import Shelf
        from nextword.server.process import serve as serve_process
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("fastapi", "uvicorn", "starlette"):
            raise MissingPart(str(error.name), "serve", "nextword serve") from error
        raise
    shelf = Shelf(folders, settings) if runs else first.first_shelf(settings, show.note)
    shelf.open_all()

    def tell(address: str) -> None:
        if json:
            show.as_json({"address": address, "models": shelf.names})
        else:
            names = ", ".join(shelf.names)
            show.note(f"serving {f'{names} ' if names else ''}at {address} (Ctrl-C ends it)")

    beside = first.Training(shelf, show.note) if shelf.expected else None
    code = serve_process(shelf, settings, tell, beside)
    if "torch" in sys.modules:  # what its threads do at the end of a process may abort it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise typer.Exit(code)
