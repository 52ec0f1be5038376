"""``nextword generate``: text from a model."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from nextword.cli import show
from nextword.cli.options import Debug, DraftRun, Json, PrecisionName, RunName, Sets, With


class Decode(StrEnum):
    """How the next token is chosen."""

    greedy = "greedy"
    beam = "beam"
    sample = "sample"
    mbr = "mbr"


def generate(
    run: RunName,
    prompt: Annotated[
        str, typer.Option(metavar="TEXT", help="The text to continue.", show_default="the beginning")
    ] = "",
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="The most tokens to generate.", show_default="100")
    ] = None,
    decode: Annotated[Decode, typer.Option(help="How tokens are chosen.")] = Decode.sample,
    beam_size: Annotated[
        int | None, typer.Option(metavar="K", help="The beam size of --decode beam.", show_default="4")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(metavar="T", help="Below 1: more predictable; above: more random.", show_default="1.0"),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(metavar="K", help="Sample from the K most likely tokens.", show_default="0: all"),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Sample from the most likely tokens of total probability P.",
            show_default="1.0",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="The same seed gives the same text.", show_default="drawn at random"),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(metavar="N", help="The number of texts.", show_default="1")
    ] = None,
    beside: With = None,
    draft: DraftRun = None,
    precision: PrecisionName = "fp32",
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Continue a prompt. --set takes min_p, typical, stop and more."""
    from nextword.api import generate as generating

    options = {
        "decode": decode.value, "max_tokens": max_tokens, "beam_size": beam_size, "temperature": temperature,
        "top_k": top_k, "top_p": top_p, "seed": seed, "samples": samples,
    }  # fmt: skip
    given = {key: value for key, value in options.items() if value is not None}
    settings = generating.settings(given, sets or ())
    asked = generating.Beside(tuple(beside or ()), draft, precision)
    writer = generating.Writer.of(run, asked, settings)
    found = writer.run
    for note in (*writer.notes, *generating.notes_on(found, prompt)):
        show.note(note)
    endings: list[generating.Ending] = []
    if json:
        values = generating.as_json(writer, prompt)
        endings += [generating.Ending(text["reason"], text["tokens"]) for text in values["texts"]]
        show.as_json(values)
    else:
        show.pieces(_kept(generating.stream(writer, prompt), endings))
    show.note(generating.why_stopped(endings, found.tokenizer.unit, settings))
    if writer.draft is not None:
        show.note(generating.shown(writer.draft))
    if generating.is_random(settings) and seed is None:
        show.note(f"seed: {settings.seed}")


def _kept(texts: Generator[str, None, list[Any]], endings: list[Any]) -> Iterator[str]:
    """Pass on the text; keep how it ended."""
    endings += yield from texts
