"""``nextword train``: text in, a run folder out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, Model, Overwrite, Sets, TokenizerName
from nextword.core.display import about, show_size

_BYTES = ("bytes", "memory", "disk")


def _with_units(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Give the figures of an estimate their units, for people; JSON has plain numbers."""
    shown = dict(figures)
    for name in _BYTES:
        if shown.get(name) is not None:
            shown[name] = show_size(shown[name])
    shown.pop("minutes", None)
    if shown.get("seconds") is not None:
        shown["seconds"] = f"{shown['seconds']:,.1f} s ({about(shown['seconds'])})"
    return {
        "text" if name == "bytes" else "time" if name == "seconds" else name: shown[name] for name in shown
    }


def train(
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA", help="Files, folders or corpora (default: sotu)."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="What to learn: lm, tag, classify or translate (default: lm).")
    ] = None,
    model: Model = None,
    recipe: Annotated[str | None, typer.Option(metavar="FILE.toml", help="Settings from a file.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="Start from another run's weights.")
    ] = None,
    valid: Annotated[
        list[str] | None,
        typer.Option(metavar="DATA", help="Held-out text (default, neural: the last 5 %)."),
    ] = None,
    tokenizer: TokenizerName = None,
    out: Annotated[
        str | None, typer.Option(metavar="RUN", help="Folder of the run (default: runs/…).")
    ] = None,
    minutes: Annotated[float | None, typer.Option(metavar="M", help="Time for the whole command.")] = None,
    sets: Sets = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed.", show_default="0")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an interrupted run; a finished one stays.")
    ] = False,
    overwrite: Overwrite = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only estimate time, memory and disk space.")
    ] = False,
    device: Annotated[str, typer.Option(metavar="D", help="auto, cpu, cuda or mps.")] = "auto",
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Train a model on text and save it as a run."""
    from nextword.api import train as training
    from nextword.system.launch import launched, process_start
    from nextword.training.order import Order

    order = Order(
        data=tuple(data or ()), task=task, model=model, recipe=recipe, source=source,
        valid=tuple(valid) if valid else None, tokenizer=tokenizer, minutes=minutes, sets=tuple(sets or ()),
        seed=seed, device=device,
    )  # fmt: skip
    if estimate:
        figures = training.estimate(order) if launched().is_first else {}
        show.as_json(figures) if json and figures else show.figures(_with_units(figures))
        return
    run = show.follow(training.run(order, out, resume=resume, overwrite=overwrite, began=process_start()))
    if not launched().is_first:
        return
    if json:
        show.as_json(run.summary())
    else:
        show.result(run.place)
    show.note(f"saved {run.describe()} in {run.place}")
    show.next_command(run.settings.find_task().after(run.settings, run.place))
    if run.facts.training.get("stopped") == "SIGINT":
        raise typer.Exit(130)
