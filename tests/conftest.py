"""What all tests share: private caches, and the rule for tools that may be missing.

A test says ``@pytest.mark.needs("lmplz")``; where the program (on PATH) or Python module is missing it
is skipped with the reason. Continuous integration lists what it prepared in NEXTWORD_REQUIRE, and then
a skip that names one of these is a failure.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal

import pytest
from hypothesis import settings

# Examples are the same every time; the first one may wait for a compiled kernel, so none has a deadline.
settings.register_profile("nextword", deadline=None, derandomize=True)
settings.load_profile("nextword")

# Small tensors gain nothing from threads; torch reads this when it is imported, here and in what we start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

REQUIRED = tuple(filter(None, os.environ.get("NEXTWORD_REQUIRE", "").split(",")))
_broken: list[str] = []


def _is_there(tool: str) -> bool:
    return shutil.which(tool) is not None or importlib.util.find_spec(tool) is not None


def pytest_configure() -> None:
    """A shell that starts us in the background ignores SIGINT; tests send it to themselves and children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        missing = [tool for tool in mark.args if not _is_there(tool)]
        if missing:
            pytest.skip(f"needs {', '.join(missing)}, which is not installed")


def _note_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        _broken.extend(
            f"{report.nodeid}: {reason}" for tool in REQUIRED if re.search(rf"\b{re.escape(tool)}\b", reason)
        )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _note_skip(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note_skip(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _broken and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _broken:
        terminalreporter.write_line(f"skipped although its tool was prepared: {line}", red=True)


@pytest.fixture(autouse=True)
def _private_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache."""
    monkeypatch.setenv("NEXTWORD_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
