"""What the machine has and what this process may use of it: processors, memory, instruction sets.

A container sees all processors and all memory of its host; its own limits are in its cgroup. Standard
library only; everything is read from Linux's files, and whatever a system does not report is None.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nextword.core.errors import TrainingError

# Instruction sets that decide the speed of matrix products, by their Linux names.
FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve", "bf16")
# Lines of /proc/cpuinfo that identify a processor; the others change all the time.
_IDENTITY = (
    "vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
)  # fmt: skip
_ENOUGH = 1 << 60  # a memory limit above this means no limit


@dataclass(frozen=True)
class Machine:
    """One machine as this process sees it."""

    kind: str  # x86_64, aarch64, …
    processors: int  # present
    allowed: int  # those this process may run on
    quota: float | None  # CPU quota of a container, in processors
    memory: int | None  # bytes present
    available: int | None  # bytes available now
    limit: int | None  # bytes a container may use
    features: tuple[str, ...]  # those of `FEATURES` it has

    @property
    def usable(self) -> int:
        """Number of threads worth using."""
        return max(1, self.allowed if self.quota is None else min(self.allowed, round(self.quota)))


def read_machine(root: Path = Path("/")) -> Machine:
    """Describe this machine; ``root`` is the folder of ``proc`` and ``sys``."""
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
    """Return the number of processors this process may run on."""
    return len(_allowed())


def _allowed() -> set[int]:
    affinity = getattr(os, "sched_getaffinity", None)
    return set(affinity(0)) if affinity is not None else set(range(os.cpu_count() or 1))


def busy_seconds(root: Path = Path("/")) -> float | None:
    """Return the seconds our processors have been busy since boot, for all programs together."""
    mine, total = {f"cpu{number}" for number in _allowed()}, None
    for line in _read(root / "proc/stat").split("\n"):
        name, *ticks = line.split(" ")
        if name in mine:
            user, nice, system, _idle, _waiting, *interrupts = (int(each) for each in ticks[:8])
            total = (total or 0) + user + nice + system + sum(interrupts)
    return None if total is None else total / os.sysconf("SC_CLK_TCK")


def _memory(root: Path) -> dict[str, int]:
    """Return ``/proc/meminfo`` in bytes."""
    found = {}
    for line in _read(root / "proc/meminfo").split("\n"):
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            found[name] = int(words[0]) * 1024
    return found


def describe_processor(root: Path = Path("/")) -> dict[str, str]:
    """Return the system's description of the first processor: maker, model, stepping, microcode, features."""
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
    """Return the smallest limit from our own cgroup up to the root: ``cpu.max``, or version 1's two files."""
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
    """Return the cgroup folders of this process, of versions 2 and 1, with all their parents."""
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


def cache_folder() -> Path:
    """Return $NEXTWORD_CACHE, or the user's cache folder."""
    named = os.environ.get("NEXTWORD_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "nextword"


_SIGNS = ("not enough memory", "can't allocate memory", "out of memory", "bad_alloc")


@contextmanager
def enough_memory(doing: str) -> Iterator[None]:
    """Turn an allocation that fails within the block into a `TrainingError`."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not any(sign in str(error) for sign in _SIGNS):
            raise
        raise TrainingError(
            f"out of memory while trying to {doing}; set a smaller train.batch, train.length or model.hidden "
            "(--estimate shows how much a training run needs)"
        ) from error


def serialized(tensors: Mapping[str, Any]) -> bytes:
    """Serialize tensors as a safetensors file; running out of memory is a MemoryError, as usual in Python."""
    from safetensors.torch import save

    try:
        return save(dict(tensors))
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # a panic of the Rust library
            raise MemoryError("out of memory while copying the state") from error
        raise
