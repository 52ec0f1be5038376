"""The table of experiments in ``docs/lectures.md``, made from their findings.

``nextword lab all --json > all.json && python tests/support/lab_tables.py all.json`` writes it; a later file
replaces what an earlier one says of an experiment. A test compares claims and verdicts with the code.
"""

from __future__ import annotations

import datetime
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from places import ROOT

import nextword
from nextword.core import catalog

PAGE = ROOT / "docs" / "lectures.md"
BLOCK = re.compile(r"<!-- experiments -->\n.*?<!-- end of experiments -->\n", re.DOTALL)
HEAD = "| experiment | part of the claim | verdict | measured |\n|---|---|---|---|\n"
_CELL = re.compile(r"(?<!\\)\|")


def claims(name: str) -> tuple[str, ...]:
    """The parts of an experiment's claim, as its file has them."""
    module = importlib.import_module(catalog.find_path("lab", name).partition(":")[0])
    found: tuple[str, ...] = module.CLAIMS
    return found


def block(how: str, results: list[dict[str, Any]]) -> str:
    """The table, between two comments that mark it as written by this script."""
    rows = []
    for each in results:
        rows.append(_row(f"`{each['name']}`", "all of it", f"**{each['verdict']}**", each["sentence"]))
        rows += [_row("", part["claim"], part["verdict"], part["measured"]) for part in each["findings"]]
    return f"<!-- experiments -->\n{how}\n\n{HEAD}{''.join(rows)}<!-- end of experiments -->\n"


def parse(text: str) -> tuple[str, list[dict[str, Any]]]:
    """Read the table back: how it was measured, and the results."""
    (found,) = BLOCK.findall(text)
    how = found.split("\n")[1]
    results: list[dict[str, Any]] = []
    for line in found.partition(HEAD)[2].split("\n"):
        if not line.startswith("|"):
            continue
        name, claim, verdict, measured = (
            cell.strip().replace("\\|", "|") for cell in _CELL.split(line)[1:-1]
        )
        if name:
            first = {"name": name.strip("`"), "verdict": verdict.strip("*"), "sentence": measured}
            results.append({**first, "findings": []})
        else:
            results[-1]["findings"].append({"claim": claim, "verdict": verdict, "measured": measured})
    return how, results


def _row(*cells: str) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |\n"


def main(files: list[str]) -> None:
    """Write the table from these files, in the lectures' order."""
    found: dict[str, dict[str, Any]] = {}
    for path in map(Path, files):
        made = json.loads(path.read_text(encoding="utf-8"))
        found |= {each["name"]: each for each in made["findings"]}
    newest = max(Path(file).stat().st_mtime for file in files)
    how = (
        f"Measured on {datetime.date.fromtimestamp(newest)} with nextword {nextword.__version__} by "
        "`nextword lab all`, on the embedded corpus and with small networks, one thread. Times and what is "
        "trained differ a little elsewhere."
    )
    text = PAGE.read_text(encoding="utf-8")
    new = block(how, [found[name] for name in catalog.names("lab")])
    PAGE.write_text(BLOCK.sub(lambda _: new, text), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
