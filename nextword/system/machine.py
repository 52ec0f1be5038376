"""What the machine has and what this process may use of it: processors, memory, instructions.

A container sees all processors and all memory of its host; what it may use stands in its cgroup. Standard
library only; everything is read from files of Linux, and what a system does not tell is None.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# Instructions that decide how quick products are, as Linux names them.
FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve", "bf16")
# Lines of /proc/cpuinfo that tell one processor from another; the others change from moment to moment.
_IDENTITY = (
    "vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
)  # fmt: skip
_ENOUGH = 1 << 60  # a limit of memory above this is none


@dataclass(frozen=True)
class Machine:
    """One machine as this process sees it."""

    kind: str  # x86_64, aarch64, …
    processors: int  # there
    allowed: int  # this process may run on
    quota: float | None  # processors' worth of time that a container may use
    memory: int | None  # bytes there
    available: int | None  # bytes that could be used now
    limit: int | None  # bytes a container may use
    features: tuple[str, ...]  # of `FEATURES`, those there are

    @property
    def usable(self) -> int:
        """Threads that are worth while."""
        return max(1, self.allowed if self.quota is None else min(self.allowed, round(self.quota)))


def read_machine(root: Path = Path("/")) -> Machine:
    """This machine; ``root``: where ``proc`` and ``sys`` are."""
    memory = _memory(root)
    return Machine(
        kind=platform.machine(),
        processors=os.cpu_count() or 1,
        allowed=allowed(),
        quota=_quota(root),
        memory=memory.get("MemTotal"),
        available=memory.get("MemAvailable"),
        limit=_memory_limit(root),
        features=_features(root),
    )


def allowed() -> int:
    """The processors this process may run on."""
    return len(_allowed())


def _allowed() -> set[int]:
    affinity = getattr(os, "sched_getaffinity", None)
    return set(affinity(0)) if affinity is not None else set(range(os.cpu_count() or 1))


def busy_seconds(root: Path = Path("/")) -> float | None:
    """Seconds that the processors we may use have worked since the machine was started, for anybody."""
    mine, total = {f"cpu{number}" for number in _allowed()}, None
    for line in _read(root / "proc/stat").split("\n"):
        name, *ticks = line.split(" ")
        if name in mine:
            user, nice, system, _idle, _waiting, *interrupts = (int(each) for each in ticks[:8])
            total = (total or 0) + user + nice + system + sum(interrupts)
    return None if total is None else total / os.sysconf("SC_CLK_TCK")


def _memory(root: Path) -> dict[str, int]:
    """``/proc/meminfo`` in bytes."""
    found = {}
    for line in _read(root / "proc/meminfo").split("\n"):
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            found[name] = int(words[0]) * 1024
    return found


def describe_processor(root: Path = Path("/")) -> dict[str, str]:
    """What the system says of the first processor: maker, model, stepping, microcode and all instructions."""
    found: dict[str, str] = {}
    for line in _read(root / "proc/cpuinfo").split("\n"):
        name, _, rest = (part.strip() for part in line.partition(":"))
        if name == "processor" and found:
            break
        if name in _IDENTITY:
            found[name] = rest
    return found or {"model name": platform.processor()}


def _features(root: Path) -> tuple[str, ...]:
    about = describe_processor(root)
    there = (about.get("flags") or about.get("Features") or "").split()
    return tuple(name for name in FEATURES if name in there)


def _quota(root: Path) -> float | None:
    """The smallest of the limits from our own group up to the root: ``cpu.max``, or the older two files."""
    found = []
    for folder in _groups(root):
        words = _read(folder / "cpu.max").split()
        if len(words) != 2:
            words = [_read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        with suppress(ValueError, ZeroDivisionError):
            quota = int(words[0]) / int(words[1])
            found += [quota] if quota > 0 else []
    return min(found, default=None)


def _memory_limit(root: Path) -> int | None:
    found = []
    for folder in _groups(root):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(ValueError):
                limit = int(_read(folder / name).strip())
                found += [limit] if limit < _ENOUGH else []
    return min(found, default=None)


def _groups(root: Path) -> list[Path]:
    """Folders of the cgroups of this process, of version 2 and of version 1, with all above them."""
    base = root / "sys/fs/cgroup"
    found = []
    for line in _read(root / "proc/self/cgroup").split("\n"):
        kinds, _, path = line.partition(":")[2].partition(":")
        for kind in kinds.split(","):
            place = Path(path.strip().lstrip("/"))
            if kind in ("", "cpu", "memory"):
                found += [base / kind / each for each in (place, *place.parents)]
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
