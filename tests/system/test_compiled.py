"""Compiled functions: kept on disk where that is possible, and compiled in each process where it is not."""

import re
from pathlib import Path

import numba
import pytest
from numba.core import caching

import nextword
from nextword.system.compiled import compiled, compiled_callback


def twice(x):
    return 2 * x


@pytest.fixture
def no_place(monkeypatch):
    """No folder in which numba could keep anything, as on a read-only disk."""
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])


def test_what_was_compiled_is_kept():
    assert compiled()(twice).stats.cache_path


def test_without_a_place_functions_are_compiled_all_the_same(no_place):
    assert compiled(nogil=True)(twice)(21) == 42
    assert compiled("int64(int64)")(twice)(21) == 42
    assert compiled_callback("int64(int64)")(twice).ctypes(21) == 42


def test_other_errors_are_not_taken_for_a_missing_place(monkeypatch):
    def broken(**options):
        raise RuntimeError("another reason")

    monkeypatch.setattr(numba, "njit", broken)
    with pytest.raises(RuntimeError, match="another reason"):
        compiled()(twice)


def test_every_function_that_is_compiled_is_kept_in_this_way():
    package = Path(nextword.__file__).parent
    others = [
        path for path in package.rglob("*.py") if re.search(r"\bnjit\b|\bcfunc\b", path.read_text("utf-8"))
    ]
    assert [path.relative_to(package).as_posix() for path in others] == ["system/compiled.py"]
