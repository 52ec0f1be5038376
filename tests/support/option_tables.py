"""The tables of options in ``docs/<verb>.md``, made from the commands themselves.

``python tests/support/option_tables.py`` writes them; a test compares them with the commands.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer.main
from places import ROOT

from nextword.cli.app import app

DOCS = ROOT / "docs"
BLOCK = re.compile(r"<!-- options -->\n.*?<!-- end of options -->\n", re.DOTALL)


def commands() -> dict[str, Any]:
    """Every verb with its command; some hold commands of their own."""
    root: Any = typer.main.get_command(app)
    return dict(root.commands)


def page(verb: str) -> Path:
    """The page of a verb."""
    return DOCS / f"{verb}.md"


def block(verb: str) -> str:
    """The tables of a verb, between two comments that mark them as written by this script."""
    command = commands()[verb]
    inner = getattr(command, "commands", None)
    tables = [_table(command)] if inner is None else [
        f"### `nextword {verb} {name}`\n\n{each.help}\n\n{_table(each)}" for name, each in inner.items()
    ]  # fmt: skip
    return "<!-- options -->\n" + "\n".join(tables) + "<!-- end of options -->\n"


def _table(command: Any) -> str:
    """What ``--help`` says of each argument and option, in two columns."""
    context = command.context_class(command, info_name=command.name)
    rows = []
    for each in command.params:
        name, meaning = each.get_help_record(context)
        shown = _argument(each) if each.param_type_name == "argument" else name
        rows.append(f"| `{_cell(shown)}` | {_cell(meaning)} |\n")
    return "| option | meaning |\n|---|---|\n" + "".join(rows)


def _argument(each: Any) -> str:
    """An argument as the fixed interface writes it: [DATA...] may be left out or given several times."""
    name = each.metavar + ("..." if each.nargs != 1 else "")
    return name if each.required else f"[{name}]"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Write the tables into the pages."""
    for verb in commands():
        path = page(verb)
        text = path.read_text(encoding="utf-8")
        made = block(verb)
        path.write_text(BLOCK.sub(lambda _: made, text), encoding="utf-8")  # noqa: B023


if __name__ == "__main__":
    main()
