"""The layers hold: import-linter's contract, and nothing imports the package root."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


@pytest.mark.slow
@pytest.mark.needs("importlinter")
def test_folders_import_downwards_only():
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
