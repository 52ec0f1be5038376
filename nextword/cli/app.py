"""The program and its commands; each verb is a file of the same name, here, in ``api`` and in ``docs``.

Plain help without rich, so that ``nextword --help`` answers at once; a test freezes commands and options.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nextword.cli import (
    compare,
    compress,
    data,
    decompress,
    doctor,
    export,
    generate,
    import_,
    inspect,
    lab,
    lm_eval,
    mix,
    next,  # noqa: A004
    predict,
    presets,
    rescore,
    score,
    serve,
    tokenizer,
    train,
)
from nextword.cli import eval as eval_
from nextword.cli import filter as filter_
from nextword.cli import list as list_
from nextword.cli.options import with_parts


class Interrupt(BaseException):
    """Ctrl-C; the message says what was kept, if that is known."""


class Commands(TyperGroup):
    """The commands of the program."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Ctrl-C becomes `Interrupt`, since the parser would turn it into an exit code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Interrupt(*stop.args) from stop


app = typer.Typer(
    name="nextword",
    cls=Commands,
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


app.command("train")(with_parts(train.train))
app.command("eval")(with_parts(eval_.evaluate))
app.command("score")(with_parts(score.score))
app.command("filter")(with_parts(filter_.filter_lines))
app.command("rescore")(with_parts(rescore.rescore))
app.command("compress")(with_parts(compress.compress))
app.command("decompress")(with_parts(decompress.decompress))
app.command("mix")(with_parts(mix.mix))
app.command("next")(with_parts(next.next_))
app.command("generate")(with_parts(generate.generate))
app.command("predict")(with_parts(predict.predict))
app.command("serve")(with_parts(serve.serve))
app.command("lm-eval")(with_parts(lm_eval.lm_eval))
app.command("compare")(with_parts(compare.compare))
app.command("lab")(with_parts(lab.lab))
app.command("inspect")(with_parts(inspect.inspect))
app.command("export")(with_parts(export.export))
app.command("import")(with_parts(import_.import_))
app.add_typer(tokenizer.app, name="tokenizer")
app.add_typer(data.app, name="data")
app.command("list")(with_parts(list_.list_slot))
app.command("presets")(presets.presets)
app.command("doctor")(doctor.doctor)
