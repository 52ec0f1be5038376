"""Which instruction sets really work on this processor, and whether bf16 or float32 products are faster.

Determined once per machine and torch version, by a child process (`products`) that may crash in our
place, and stored in the cache folder. CPUID is not reliable: some hypervisors advertise AMX but do not allow
it, and where bf16 works it may still be slower.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from math import log
from pathlib import Path
from typing import Any, Literal, get_args

from nextword.system import products
from nextword.system.disk import write_atomically
from nextword.system.machine import cache_folder, describe_processor

LIMIT = "ONEDNN_MAX_CPU_ISA"  # the variable that limits oneDNN, torch's library of matrix products
LIMITS = ("", "AVX512_CORE_FP16", "AVX512_CORE", "AVX2")  # in this order; "": no limit; the second drops AMX
FASTER = 1.05  # bf16 is less precise: it must be this much faster to be used
_OURS = "NEXTWORD_MAX_CPU_ISA"  # set with LIMIT if we set that, for child processes
_OF_USERS = (LIMIT, "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")  # variables that change the answer
_PATIENCE = 120.0  # seconds the child may take, on a busy machine
_FORM = 1  # version of the cached answer

Bf16 = Literal["works", "missing", "crashes", "unknown"]


@dataclass(frozen=True)
class Processor:
    """What was determined about the processor."""

    bf16: Bf16
    limit: str = ""  # value of LIMIT with which everything works
    ratios: Mapping[str, float] = field(default_factory=dict)  # "linear 128" -> speed relative to float32
    why: str = ""  # what went wrong, if anything
    has_float32: bool = True

    def faster(self, kind: str, width: int) -> str:
        """Return the faster type, "bf16" or "fp32", of products of this kind (`products.TIMED`) and width."""
        nearest = min(products.WIDTHS, key=lambda each: abs(log(each / max(1, width))))
        return "bf16" if self.ratios.get(f"{kind} {nearest}", 0.0) >= FASTER else "fp32"

    @property
    def refusal(self) -> str:
        """Why this process cannot use bf16; "" if it can."""
        if self.bf16 != "works":
            return self.why or f"bf16 products: {self.bf16}"
        if self.limit and os.environ.get(_OURS) != self.limit:
            return f"{self.why}, but torch was already loaded"
        return ""


_answer: Processor | None = None  # as determined or read by this process


def find_out(again: bool = False) -> Processor:
    """Return what works here, from the cache or else from the child process; ``again`` ignores the cache."""
    global _answer
    if again or known() is None:
        _answer = _keep(_ask(), again)
    assert _answer is not None
    return _answer


def known() -> Processor | None:
    """Return what was determined earlier, or None."""
    global _answer
    _answer = _answer or _recall()
    return _answer


def remember(found: Processor) -> None:
    """Use this answer from now on."""
    global _answer
    _answer = _keep(found, again=True)


def forget() -> None:
    """Drop this process's answer: read or determine it again when it is next needed."""
    global _answer
    _answer = None


def prepare() -> str:
    """Limit torch, before it is loaded, to instructions that work; return a sentence if that is new."""
    is_new = known() is None
    found = find_out()
    if found.limit and "torch" not in sys.modules:
        os.environ[LIMIT] = os.environ[_OURS] = found.limit
    return found.why if is_new and found.bf16 != "missing" else ""


def place() -> Path:
    """Return the path of the cached answer."""
    name = hashlib.sha256(json.dumps(_identity(), sort_keys=True).encode()).hexdigest()[:32]
    return cache_folder() / "processor" / f"{name}.json"


def _identity() -> dict[str, Any]:
    """Return what the answer depends on: machine, kernel, processor, torch, and limits set by others."""
    limits = {name: os.environ[name] for name in _OF_USERS if name in os.environ}
    if limits.get(LIMIT) == os.environ.get(_OURS, ""):
        del limits[LIMIT]
    return {
        "form": _FORM,
        "machine": platform.node(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": describe_processor(),
        "torch": _torch_version(),
        "limits": limits,
    }


def _torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""


def _ask() -> Processor:
    """Start the child and read its answer; a crash is an answer, too."""
    if not _torch_version():
        return Processor("unknown", why="torch is not installed")
    environment = {name: value for name, value in os.environ.items() if name != _OURS}
    if _OURS in os.environ:
        environment.pop(LIMIT, None)
    try:
        done = subprocess.run(
            [sys.executable, "-P", products.__file__, *LIMITS],
            capture_output=True, text=True, env=environment, timeout=_PATIENCE, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return read_answer(json.loads(done.stdout.strip().rsplit("\n", 1)[-1]))
    except subprocess.TimeoutExpired:
        return Processor("unknown", why=f"a trial of bf16 products timed out after {_PATIENCE:g} s")
    except (OSError, LookupError, TypeError, ValueError):
        return Processor("unknown", why="bf16 products could not be tried in a child process")


def read_answer(attempts: list[dict[str, Any]]) -> Processor:
    """Turn attempts under lower and lower limits into an answer: the highest limit that works."""
    first, last = attempts[0], attempts[-1]
    if last["reached"] != products.END:  # not even the lowest limit helps
        works = next((each for each in attempts if not each["reached"].startswith("fp32")), None)
        why = f"{_crash(first)} on this processor"
        return Processor("crashes", works["limit"] if works else "", why=why, has_float32=works is not None)
    missing = str(last["missing"])
    if last is first:
        return Processor("missing" if missing else "works", "", last["ratios"], missing)
    if missing and first["reached"].startswith("bf16"):  # it crashes, or is missing
        return Processor("crashes", why=f"{_crash(first)} on this processor")
    why = f"{_crash(first)} on this processor unless {LIMIT}={last['limit']}, which nextword sets"
    return Processor("missing" if missing else "works", last["limit"], last["ratios"], why)


def _crash(attempt: Mapping[str, Any]) -> str:
    """Return how an attempt ended: "bf16 products crash with SIGILL"."""
    name = "float32" if attempt["reached"].startswith("fp32") else "bf16"
    number = int(attempt["signal"])
    known = number in signal.Signals.__members__.values()
    return f"{name} products {f'crash with {signal.Signals(number).name}' if known else 'fail'}"


def _recall() -> Processor | None:
    """Read the answer from the cache; a damaged file or one of another machine is ignored."""
    try:
        values = json.loads(place().read_text(encoding="utf-8"))
        found = Processor(**values["found"])
        ratios = {str(name): float(ratio) for name, ratio in found.ratios.items()}
        is_sound = values["about"] == _identity() and found.bf16 in get_args(Bf16) and found.limit in LIMITS
        return found if is_sound and ratios == found.ratios else None
    except (OSError, AttributeError, KeyError, TypeError, ValueError):
        return None


def _keep(found: Processor, again: bool) -> Processor:
    """Cache the answer atomically. If two processes ask at once, the first answer wins."""
    text = json.dumps({"found": asdict(found), "about": _identity()}) + "\n"
    path = place()
    with suppress(OSError):  # if the cache is not writable, the child runs again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        if not again and (earlier := _recall()) is not None:
            return earlier
        write_atomically(path, text, mode=0o600)
    return found
