"""What a name of the catalog means, in one line: the first sentence of its docstring, read from the source.

Nothing is imported, so that a list of parts of networks does not load torch.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import entry_points
from pathlib import Path

from nextword.core import catalog

BUILT_IN = "built in"
_PACKAGE = Path(__file__).resolve().parents[1]  # of nextword


def describe(slot: str, name: str) -> str:
    """Return one line on a name; empty where its source says nothing."""
    module, _, attribute = catalog.find_path(slot, name).partition(":")
    tree = _parsed(module)
    return "" if tree is None else _first_line(_docstring(tree, attribute))


def origin(slot: str, name: str) -> str:
    """Return the package that a name comes from, or that it is built in."""
    found = catalog.spelled(slot, name) or name
    if found in catalog.SLOTS.get(slot, {}):
        return BUILT_IN
    own = (entry for entry in entry_points(group=f"nextword.{slot}") if entry.name == found)
    packages = [entry.dist.name if entry.dist else entry.module.partition(".")[0] for entry in own]
    return packages[0] if packages else ""


@cache
def _parsed(module: str) -> ast.Module | None:
    """Parse the source of a module; None where there is none."""
    path = _source(module)
    try:
        return None if path is None else ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _source(module: str) -> Path | None:
    """Find the file of a module without importing the packages around it."""
    top, *rest = module.split(".")
    spec = PathFinder.find_spec(top)
    folders = [_PACKAGE] if top == "nextword" else [Path(each) for each in _folders(spec)]
    for folder in folders:
        place = folder.joinpath(*rest)
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if rest and path.is_file():
                return path
    return Path(spec.origin) if not rest and spec is not None and spec.origin else None


def _folders(spec: ModuleSpec | None) -> list[str]:
    return [] if spec is None else list(spec.submodule_search_locations or ())


def _docstring(tree: ast.Module, name: str) -> str:
    """Return the docstring of a class, a function, or an object: below it, or that of its class."""
    following = [*tree.body[1:], ast.Pass()]
    for statement, after in zip(tree.body, following, strict=True):
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)) and statement.name == name:
            return ast.get_docstring(statement) or ""
        if _assigns(statement, name):
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                return str(after.value.value)
            value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
            made = value.func if isinstance(value, ast.Call) else None
            return _docstring(tree, made.id) if isinstance(made, ast.Name) else ""
    return ""


def _assigns(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.AnnAssign):
        return isinstance(statement.target, ast.Name) and statement.target.id == name
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _first_line(docstring: str) -> str:
    """Return the first paragraph on one line, without the end of its sentence."""
    return " ".join(docstring.strip().partition("\n\n")[0].split()).removesuffix(".")
