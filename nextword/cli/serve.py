"""``nextword serve``: runs over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, complete_run


def serve(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", help="Runs: folders, or names under runs/.", autocompletion=complete_run
        ),
    ],
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
    """Serve runs over HTTP: completions that also score, chat, vectors, predictions; SIGTERM ends it."""
    from nextword.api import serve as serving
    from nextword.core.errors import MissingPart

    settings = serving.settings(host, port, api_key_file, insecure)
    folders = serving.find_runs(runs)
    try:
        from nextword.server.models import Shelf
        from nextword.server.process import serve as serve_process
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("fastapi", "uvicorn", "starlette"):
            raise MissingPart(str(error.name), "serve", "nextword serve") from error
        raise
    shelf = Shelf(folders, settings)
    shelf.open_all()

    def tell(address: str) -> None:
        if json:
            show.as_json({"address": address, "models": shelf.names})
        else:
            show.note(f"serving {', '.join(shelf.names)} at {address} (Ctrl-C ends it)")

    raise typer.Exit(serve_process(shelf, settings, tell))
