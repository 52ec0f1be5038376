"""The layers hold: import-linter's contracts, no cycles, and nothing imports the package root."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

FILES = sorted((ROOT / "nextword").rglob("*.py"))


def _imports_root(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(name.name == "nextword" for name in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.module == "nextword" and node.level == 0:
            return True
    return False


def test_nothing_imports_the_package_root():
    assert [str(path) for path in FILES if _imports_root(path)] == []


def test_no_call_that_can_run_foreign_code():
    words = ("import pickle", "yaml.load(", "shell=True", ".splitlines(", "trust_remote_code")
    texts = {path.name: path.read_text(encoding="utf-8") for path in FILES}
    found = [(name, word) for name, text in texts.items() for word in words if word in text]
    assert found == []


def _graph():
    """The imports of every file by every other, those inside functions included, those for types left out."""
    import grimp

    graph = grimp.build_graph("nextword", exclude_type_checking_imports=True, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def _cycles(graph):
    """The strongly connected components of more than one file, by the paths there and back."""

    def reached(start):
        seen, todo = set(), [start]
        while todo:
            new = graph[todo.pop()] - seen
            seen |= new
            todo += new
        return seen

    on_a_cycle = {module: seen for module in graph if module in (seen := reached(module))}
    return {
        frozenset(other for other in seen if module in on_a_cycle.get(other, ()))
        for module, seen in on_a_cycle.items()
    }


@pytest.mark.needs("grimp")
def test_no_file_imports_itself_through_others():
    assert _cycles(_graph()) == set()


def test_a_cycle_is_found_through_any_number_of_files():
    chain = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"a"}}
    assert _cycles(chain) == {frozenset("abc")}
    assert _cycles({"a": {"b"}, "b": set()}) == set()


@pytest.mark.slow
@pytest.mark.needs("importlinter")
def test_folders_import_downwards_only():
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
