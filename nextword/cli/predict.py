"""``nextword predict``: labels, tags or translations of new inputs."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, RunName


def predict(
    run: RunName,
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="One input per line; - reads standard input.")
    ] = "-",
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Predict with a run, one line of output per line of input; --json prints one object per line."""
    from nextword.api import predict as predicting

    for found in predicting.predict_file(run, file):
        show.as_json(dict(found.values)) if json else show.result(found.text)
