"""``nextword generate``: text from a model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, RunName, Sets


class Decode(StrEnum):
    """How the next word is chosen."""

    greedy = "greedy"
    beam = "beam"
    sample = "sample"


def generate(
    run: RunName,
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="What to continue.")] = "",
    max_tokens: Annotated[int | None, typer.Option(metavar="N", help="Most tokens to write.")] = None,
    decode: Annotated[Decode, typer.Option(help="How a word is chosen.")] = Decode.sample,
    beam_size: Annotated[int | None, typer.Option(metavar="K", help="Hypotheses kept by beam.")] = None,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="Below 1: safer; above: wilder.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(metavar="K", help="Only the K likeliest words.")] = None,
    top_p: Annotated[
        float | None, typer.Option(metavar="P", help="Only the likeliest words of mass P.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="The same seed gives the same text.")] = None,
    samples: Annotated[int | None, typer.Option(metavar="N", help="How many texts.")] = None,
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Continue a prompt; prints it and the continuation. --set takes min_p, typical, stop and others."""
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
