"""The program and its commands, each in a small file beside this one.

Plain help without rich, so that ``nextword --help`` answers at once; a test freezes commands and options.
"""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import (
    compare,
    data,
    doctor,
    exchange,
    generate,
    inspect,
    lines,
    mix,
    numbers,
    packing,
    tokenizer,
    train,
)
from nextword.cli import (
    list as list_,
)

app = typer.Typer(
    name="nextword",
    help="Train, compare and use language models, from n-gram counts up, on your own text.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"nextword {version('nextword')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.command("train")(train.train)
app.command("eval")(numbers.evaluate)
app.command("score")(numbers.score)
app.command("filter")(lines.filter_lines)
app.command("rescore")(lines.rescore)
app.command("compress")(packing.compress)
app.command("decompress")(packing.decompress)
app.command("mix")(mix.mix)
app.command("generate")(generate.generate)
app.command("compare")(compare.compare)
app.command("lab")(compare.lab)
app.command("inspect")(inspect.inspect)
app.command("export")(exchange.export)
app.command("import")(exchange.import_)
app.add_typer(tokenizer.app, name="tokenizer")
app.add_typer(data.app, name="data")
app.command("list")(list_.list_slot)
app.command("presets")(list_.presets)
app.command("doctor")(doctor.doctor)
