"""What all tests share: a private cache, instructions that work, small texts, and the rule for missing tools.

A test says ``@pytest.mark.needs("lmplz")``; where the program (on PATH) or Python module is missing it
is skipped with the reason. Continuous integration lists what it prepared in NEXTWORD_REQUIRE, and then
a skip that names one of these is a failure. ``needs("bf16")``: products of bf16 do not kill the process.

NEXTWORD_TEST_PRODUCTS=bf16 or fp32 makes that the faster type for everything that is left to choose.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from small_texts import MEETING, TWO_DOCUMENTS

from nextword.data.settings import DataSettings
from nextword.data.source import Source
from nextword.system import processor, products

# Examples are the same every time; the first one may wait for a compiled kernel, so none has a deadline.
settings.register_profile("nextword", deadline=None, derandomize=True)
settings.load_profile("nextword")

# Small tensors gain nothing from threads; torch reads this when it is imported, here and in what we start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

REQUIRED = tuple(filter(None, os.environ.get("NEXTWORD_REQUIRE", "").split(",")))
_broken: list[str] = []


CACHE = "NEXTWORD_TEST_CACHE"  # the folder that all processes of a test run share


def _is_there(tool: str) -> bool:
    if tool == "bf16":
        found = processor.find_out()
        return found.bf16 == "missing" or not found.refusal  # emulated is slow, and right
    return shutil.which(tool) is not None or importlib.util.find_spec(tool) is not None


def pytest_configure(config: pytest.Config) -> None:
    """Before torch is loaded, find out which instructions work; the processes of a test run ask once.

    A shell that starts us in the background ignores SIGINT; tests send it to themselves and children.
    """
    if CACHE not in os.environ:
        os.environ[CACHE] = tempfile.mkdtemp(prefix="nextword-tests-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(CACHE), ignore_errors=True))
    os.environ["NEXTWORD_CACHE"] = os.environ[CACHE]
    processor.prepare()
    faster = {"bf16": 2.0, "fp32": 0.5}.get(os.environ.get("NEXTWORD_TEST_PRODUCTS", ""))
    if faster is not None:
        ratios = {f"{kind} {width}": faster for kind in products.TIMED for width in products.WIDTHS}
        processor.remember(replace(processor.find_out(), ratios=ratios))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        missing = [tool for tool in mark.args if not _is_there(tool)]
        if missing:
            pytest.skip(f"needs {', '.join(missing)}, which is not there or does not work here")


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


@pytest.fixture
def two_documents(tmp_path: Path) -> Path:
    """A file of forty documents, two kinds of them."""
    path = tmp_path / "t.txt"
    path.write_text(TWO_DOCUMENTS * 20)
    return path


@pytest.fixture
def meetings(tmp_path: Path) -> Source:
    """A text of a hundred and twenty lines, to train on."""
    path = tmp_path / "text.txt"
    path.write_text(MEETING * 40)
    return Source.for_training([path], DataSettings())


@pytest.fixture
def outside(monkeypatch):
    """Install the task of another package: its entry points are found on the path."""
    from nextword.core import catalog

    monkeypatch.syspath_prepend(str(Path(__file__).parent / "support" / "outside"))
    catalog._plugins.cache_clear()
    yield
    catalog._plugins.cache_clear()


@pytest.fixture
def one_thread():
    """Let torch use one thread, as the thread of a served model does."""
    from nextword.system import threads

    with threads.using(1):
        yield
