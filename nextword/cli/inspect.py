"""``nextword inspect``: look inside a run."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import progress, show
from nextword.cli.options import Debug, Json, RunName, Sets


def _complete(incomplete: str) -> list[str]:
    from nextword.core.catalog import names

    return [name for name in names("probe") if name.startswith(incomplete)]


def inspect(
    run: RunName,
    what: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="gradients, depth, gates, eigenvalues, attention, embeddings, units, linear, surprise, "
            "evidence, beam; default: every probe that fits the run.",
            autocompletion=_complete,
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The text to look at; - reads standard input.")
    ] = None,
    against: Annotated[str | None, typer.Option(metavar="RUN2", help="A second run to compare with.")] = None,
    layer: Annotated[int | None, typer.Option(metavar="L", help="A layer, counted from 1.")] = None,
    head: Annotated[int | None, typer.Option(metavar="N", help="An attention head, counted from 1.")] = None,
    unit: Annotated[int | None, typer.Option(metavar="U", help="A hidden unit, counted from 1.")] = None,
    set_gate: Annotated[
        str | None, typer.Option(metavar="GATE=X,…", help="Fix gates, as in forget=1,input=0.")
    ] = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", metavar="FILE", help="A .html, .svg, .png or .json file.")
    ] = None,
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Look inside a run: gradients, gates, attention, embeddings, units, evidence for each token.

    Without --text the run generates one; without --out the numbers are printed.
    """
    from nextword.api import inspect as inspecting

    asked = {"layer": layer, "head": head, "unit": unit, "set_gate": set_gate}
    names = tuple(name.strip() for name in what.split(",") if name.strip()) if what else ()
    options = inspecting.InspectOptions(
        names, text, against, {key: value for key, value in asked.items() if value is not None},
        tuple(sets or ()), out,
    )  # fmt: skip
    found = progress.follow(inspecting.inspecting(run, options))
    if json:
        values = [seen.to_json() for seen in found]
        show.as_json(values[0] if len(values) == 1 else values)
    elif out is None and len(found) == 1:
        show.result(str(found[0]))
    else:
        for seen in found:
            show.result(f"{seen.what}: {seen.sentence}")
    if out is None and not json:
        show.next_command(f"nextword inspect {run} --what {found[0].what} --out {found[0].what}.html")
