"""``nextword generate``: text from a model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, RunName, Sets


class Decode(StrEnum):
    """How the next token is chosen."""

    greedy = "greedy"
    beam = "beam"
    sample = "sample"


def generate(
    run: RunName,
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="The text to continue.")] = "",
    max_tokens: Annotated[int | None, typer.Option(metavar="N", help="The most tokens to generate.")] = None,
    decode: Annotated[Decode, typer.Option(help="How tokens are chosen.")] = Decode.sample,
    beam_size: Annotated[
        int | None, typer.Option(metavar="K", help="The beam size of --decode beam.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="Below 1: more predictable; above: more random.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(metavar="K", help="Sample from the K most likely tokens.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(metavar="P", help="Sample from the most likely tokens of total probability P."),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="The same seed gives the same text.")] = None,
    samples: Annotated[int | None, typer.Option(metavar="N", help="The number of texts.")] = None,
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Continue a prompt; prints it and the continuation. --set takes min_p, typical, stop and more."""
    from nextword.api import generate as generating

    asked = {
        "decode": decode.value, "max_tokens": max_tokens, "beam_size": beam_size, "temperature": temperature,
        "top_k": top_k, "top_p": top_p, "seed": seed, "samples": samples,
    }  # fmt: skip
    given = {key: value for key, value in asked.items() if value is not None}
    settings = generating.settings(given, sets or ())
    if json:
        show.as_json(generating.as_json(run, prompt, settings))
    else:
        show.pieces(generating.stream(run, prompt, settings))
    if settings.decode == "sample" and seed is None:
        show.note(f"seed: {settings.seed}")
