"""Arguments and options that several commands share, and the two that every command has."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import pairwise
from typing import Annotated, Any, get_type_hints

import typer

from nextword.core import own_parts
from nextword.core.errors import ConfigError

_debug = False
_TABLES = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet")  # hold source and target in one file


def reset() -> None:
    """Hide tracebacks at the start of a command, unless the environment asks for them."""
    global _debug
    _debug = bool(os.environ.get("NEXTWORD_DEBUG"))


def debug() -> bool:
    """Tell whether ``--debug`` was given."""
    return _debug


def _set_debug(value: bool) -> bool:
    global _debug
    _debug = _debug or value
    return value


def with_both_files(arguments: Sequence[str]) -> list[str]:
    """Turn ``--valid SOURCE TARGET`` of a translation into ``--valid SOURCE --valid TARGET``."""
    found = list(arguments)
    tasks = [two for one, two in pairwise(found) if one == "--task"]
    if "--valid" not in found or not ("translate" in tasks or "--task=translate" in found):
        return found
    at = found.index("--valid") + 1
    has_two = at + 1 < len(found) and not found[at + 1].startswith("-")
    if has_two and not found[at].removesuffix(".gz").endswith(_TABLES):
        found.insert(at + 1, "--valid")
    return found


def without_parts(arguments: Sequence[str]) -> list[str]:
    """Load the files that ``--parts FILE`` names, which every verb takes, and return the other arguments."""
    found = list(arguments)
    rest: list[str] = []
    while found:
        argument = found.pop(0)
        if argument == "--":
            return [*rest, argument, *found]
        if argument == "--parts" and not found:
            raise ConfigError("--parts has no file; give that of the run's own parts, as in --parts mine.py")
        if argument == "--parts":
            own_parts.load(found.pop(0))
        elif argument.startswith("--parts="):
            own_parts.load(argument.removeprefix("--parts="))
        else:
            rest.append(argument)
    return rest


Parts = Annotated[
    list[str] | None,
    typer.Option("--parts", metavar="FILE", help="A Python file with parts of your own that a run needs."),
]


def with_parts(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Show ``--parts`` in the help of a command that trains or opens runs; `without_parts` has read it."""

    @wraps(verb)
    def command(*arguments: Any, parts: Parts = None, **more: Any) -> Any:
        return verb(*arguments, **more)

    kinds = {**get_type_hints(verb, include_extras=True), "parts": Parts}
    found = [*signature(verb).parameters.values(), Parameter("parts", Parameter.KEYWORD_ONLY, default=None)]
    found = [each.replace(annotation=kinds[each.name]) for each in found]
    command.__annotations__ = kinds
    command.__signature__ = Signature(found)  # type: ignore[attr-defined]
    return command


def complete_run(incomplete: str) -> list[str]:
    """Complete the names of runs in the shell."""
    from nextword.store.names import list_runs

    return [name for name in ["latest", *(run.name for run in list_runs())] if name.startswith(incomplete)]


def _complete_model(incomplete: str) -> list[str]:
    from nextword.models.presets import names

    return [name for name in ["auto", *names()] if name.startswith(incomplete)]


def _complete_tokenizer(incomplete: str) -> list[str]:
    from nextword.core.catalog import names

    return [name for name in names("tokenizer") if name.startswith(incomplete)]


RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="A run: a folder, a name under runs/, or 'latest'.", autocompletion=complete_run
    ),
]
TextFile = Annotated[str, typer.Argument(metavar="FILE|-", help="A text file; - reads standard input.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of an error.", callback=_set_debug, is_eager=True)
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A family or preset (`nextword presets`).",
        autocompletion=_complete_model,
        show_default="auto",
    ),
]
TokenizerName = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="NAME|FILE",
        help="words, characters, bytes, bpe, unigram, or a file.",
        autocompletion=_complete_tokenizer,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a setting, as in model.order=3 (nextword list MODEL)."
    ),
]
With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="RUN",
        help="Another run of the same tokenizer that writes together with it; may be repeated.",
        autocompletion=complete_run,
    ),
]
DraftRun = Annotated[
    str | None,
    typer.Option(
        "--draft",
        metavar="RUN",
        help="A small run that drafts what this one checks: faster, the same texts.",
        autocompletion=complete_run,
    ),
]
PrecisionName = Annotated[
    str, typer.Option("--precision", metavar="TYPE", help="Of the products of a network: fp32 or int8.")
]
RunOut = Annotated[str | None, typer.Option("--out", metavar="RUN", help="The new run (default: runs/…).")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")]
Prefix = Annotated[
    str, typer.Option("--prefix", metavar="TEXT", help="Beginning of the names of columns added to a table.")
]
OutFile = Annotated[str | None, typer.Option("-o", "--out", metavar="FILE", help="The file to write.")]
