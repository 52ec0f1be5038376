"""``nextword lm-eval``: the tasks of lm-evaluation-harness with a run."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, RunName


def lm_eval(
    run: RunName,
    tasks: Annotated[list[str], typer.Argument(metavar="TASK", help="Tasks of lm-eval, by their names.")],
    include: Annotated[
        str | None, typer.Option(metavar="DIR", help="A folder with tasks of your own (YAML files).")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Measure the first N examples of each task only.")
    ] = None,
    fewshot: Annotated[
        int | None, typer.Option(metavar="N", help="Solved examples before each question.")
    ] = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Measure a run with tasks of lm-evaluation-harness.

    The package lm-eval must be installed.
    """
    from nextword.api import lm_eval as measuring

    found = measuring.evaluate(run, tasks, include=include, limit=limit, fewshot=fewshot)
    if json:
        show.as_json(found)
        return
    for task, values in found.items():
        numbers = {name: value for name, value in values.items() if isinstance(value, (int, float))}
        show.figures({"task": task, **numbers})
