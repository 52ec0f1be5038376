"""Run the notebooks and store them with their outputs: ``python tests/support/stored_notebooks.py [NAME]``.

Cells run in order, in one namespace and in an empty folder; the last expression of a cell is shown as a
notebook shows it. Do so again after a change of what they show.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from places import ROOT

FOLDER = ROOT / "notebooks"


def code_cells(book: dict[str, Any]) -> list[dict[str, Any]]:
    """The code cells of a notebook, in order."""
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run one cell and return its outputs: what it printed, then its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _rows(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _rows(repr(value))}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": _rows(value._repr_html_()), **data}
        outputs.append(
            {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        )
    return outputs


def _rows(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def store(path: Path) -> None:
    """Run a notebook in an empty folder and write it with its outputs."""
    book = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number, cell in enumerate(code_cells(book), start=1):
                cell["outputs"] = run_cell("".join(cell["source"]), names, number)
                cell["execution_count"] = number
        finally:
            os.chdir(before)
    path.write_text(json.dumps(book, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Store the notebooks that are named, or all of them."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not sys.argv[1:] or any(name in path.name for name in sys.argv[1:]):
            print(path.name, flush=True)
            store(path)


if __name__ == "__main__":
    main()
