"""How far one has to walk to follow a command, and other numbers about the tree of a checkout.

    python benchmarks/architecture.py [CHECKOUT]

A walk is the list of files of the package in the order in which a command first calls a function of each
(what runs at import does not count); a change of folder is a step of that list into another folder. Cycles
and single-use files come from the static import graph: imports within functions count, those for type
checkers do not.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
STORY = ("cli", "api", "runs", "tasks", "training", "train")
SMALL = ["--set", "train.steps=20", "--set", "model.hidden=32"]
WALKS = {
    "train lstm": ["train", "text.txt", "--model", "lstm", *SMALL, "--out", "lstm"],
    "train ngram": ["train", "text.txt", "--model", "ngram", "--out", "ngram"],
    "eval": ["eval", "lstm", "text.txt"],
    "generate": ["generate", "lstm", "--prompt", "the", "--max-tokens", "10"],
    "compare": ["compare", "text.txt", "--models", "ngram,lstm", "--minutes", "0.2", "--out", "compared"],
}
FOLLOW = """
import atexit, os, sys, threading
import nextword
root = os.path.dirname(nextword.__file__) + "/"
order, seen = [], set()

def at_import(frame):
    while frame is not None:
        name = frame.f_code.co_filename
        if frame.f_code.co_name == "<module>" and name.startswith(root) and not name.endswith("__main__.py"):
            return True
        frame = frame.f_back
    return False

def look(frame, event, _):
    name = frame.f_code.co_filename
    if event != "call" or name in seen:
        return
    if not name.startswith(root):
        seen.add(name)
    elif not at_import(frame):
        seen.add(name)
        order.append(name[len(root):])

def done():
    sys.setprofile(None)
    with open(sys.argv[0], "w") as file:
        file.write("\\n".join(order))

atexit.register(done)
out, *words = sys.argv[1:]
sys.argv = [out, *words]
from nextword.cli.main import main
threading.setprofile(look)
sys.setprofile(look)
main(words)
"""


def walk(checkout: Path, words: list[str], folder: Path) -> list[str]:
    """Return the files of a command in the order of their first call."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "NEXTWORD_CACHE": str(folder / "cache")}
    out = folder / "walk"
    command = [sys.executable, "-c", FOLLOW, str(out), *words]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return out.read_text().split("\n")


def imports(checkout: Path) -> dict[str, set[str]]:
    """Return which modules each module imports."""
    files = {}
    for path in (checkout / "nextword").rglob("*.py"):
        name = ".".join(path.relative_to(checkout).with_suffix("").parts)
        files[name.removesuffix(".__init__")] = path
    return {name: _imported(path, files) - {name} for name, path in files.items()}


def _imported(path: Path, files: dict[str, Path]) -> set[str]:
    tree = ast.parse(path.read_text())
    checks = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    ]
    for_types = {id(inner) for check in checks for inner in ast.walk(check)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in for_types:
            names = [f"{node.module}.{each.name}" for each in node.names]
            found |= {name if name in files else node.module for name in names}
    return {name for name in found if name in files}


def cycles(graph: dict[str, set[str]]) -> int:
    """Count the strongly connected components of more than one module."""
    reach = {name: _reached(graph, name) for name in graph}
    knots = {frozenset(other for other in reach[name] if name in reach[other]) for name in graph}
    return sum(len(knot) > 1 for knot in knots)


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    seen, waiting = set(), [start]
    while waiting:
        for name in graph[waiting.pop()] - seen:
            seen.add(name)
            waiting.append(name)
    return seen


def main() -> None:
    """Print all numbers of one checkout."""
    checkout = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text.txt").write_text((HERE / "README.md").read_text() * 20)
        print(
            f"{'walk':12} {'files':>5} {'changes of folder':>18} {'of cli, api, runs, tasks, training':>35}"
        )
        for what, words in WALKS.items():
            files = walk(checkout, words, folder)
            folders = [os.path.dirname(file) for file in files]
            changes = sum(one != other for one, other in pairwise(folders))
            story = sum(file.split("/")[0] in STORY for file in files)
            print(f"{what:12} {len(files):5} {changes:18} {story:35}")
    graph = imports(checkout)
    users = Counter(name for found in graph.values() for name in found)
    text = "".join(path.read_text() for path in (checkout / "nextword").rglob("*.py"))
    folders = Counter(
        str(path.parent.relative_to(checkout)) for path in (checkout / "nextword").rglob("*.py")
    )
    single = sum(users[name] == 1 for name in graph)
    print(f"files {len(graph)}, module cycles {cycles(graph)}, single-use files {single}")
    rules = {name: rf"\b{name}\(" for name in ("getattr", "hasattr", "cast")} | {
        "type: ignore": "type: ignore"
    }
    print(", ".join(f"{name} {len(re.findall(rule, text))}" for name, rule in rules.items()))
    largest, count = folders.most_common(1)[0]
    print(f"largest folder {largest}: {count} files")


if __name__ == "__main__":
    main()
