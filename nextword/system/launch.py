"""Whether this process is one of several started together, as torchrun and SLURM report it.

torchrun sets RANK, WORLD_SIZE and so on; srun sets SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID, and the
job's script MASTER_ADDR and MASTER_PORT. A single process needs none of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nextword.core.errors import ConfigError, NextwordError

MOST_STARTING = 2.0  # seconds that Python takes at most until this file is loaded
_loaded = time.monotonic()
_joined = False


class Silent(NextwordError):  # noqa: N818 - it names what to do
    """This process exits without a message; another one reports why."""


@dataclass(frozen=True)
class Launch:
    """One process of a job."""

    rank: int = 0
    world: int = 1  # number of processes
    local_rank: int = 0  # on this machine
    local_world: int = 1
    host: str = ""  # where rank 0 can be reached
    port: int = 0
    has_agent: bool = False  # torchrun hosts the shared store, not rank 0
    restarts: int = 0  # how often torchrun has restarted the processes
    may_restart: bool = False
    processors: int = 0  # per process, if SLURM says; 0: its share of the machine

    def share(self, allowed: int) -> int:
        """Return how many of the usable processors belong to this process."""
        return max(1, min(allowed, self.processors) if self.processors else allowed // self.local_world)

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which alone writes files and prints."""
        return self.rank == 0

    @property
    def is_heard(self) -> bool:
        """Whether errors are printed here: by rank 0, or before joining by one process per machine."""
        return self.is_first or _joined or self.local_rank == 0


def launched(environment: Mapping[str, str] | None = None) -> Launch:
    """Return the job that the environment describes; a single process if it describes none."""
    found = os.environ if environment is None else environment
    if "RANK" in found and "WORLD_SIZE" in found:
        return _checked(Launch(
            _number(found, "RANK"), _number(found, "WORLD_SIZE"), _number(found, "LOCAL_RANK", 0),
            max(1, _number(found, "LOCAL_WORLD_SIZE", 1)), found.get("MASTER_ADDR", ""),
            _number(found, "MASTER_PORT", 0), found.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
            _number(found, "TORCHELASTIC_RESTART_COUNT", 0),
            _number(found, "TORCHELASTIC_MAX_RESTARTS", 0) > 0,
        ))  # fmt: skip
    if "MASTER_ADDR" in found and "SLURM_PROCID" in found and "SLURM_NTASKS" in found:
        return _checked(Launch(
            _number(found, "SLURM_PROCID"), _number(found, "SLURM_NTASKS"),
            _number(found, "SLURM_LOCALID", 0), host=found["MASTER_ADDR"],
            port=_number(found, "MASTER_PORT", 0),
            processors=_number(found, "SLURM_CPUS_PER_TASK", 1),
        ))  # fmt: skip
    return Launch()


def join() -> None:
    """Record that the processes are connected: from now on each may print, and exit skips teardown."""
    global _joined
    _joined = True


def has_joined() -> bool:
    """Return whether this process has joined others."""
    return _joined


def speaker() -> Launch:
    """Return the job as `launched` does, for error messages: an invalid environment is one process."""
    try:
        return launched()
    except ConfigError:
        return Launch()


def _number(found: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = found.get(name, "")
    if not text and default is not None:
        return default
    if not text.isascii() or not text.isdigit():
        raise ConfigError(
            f"the environment variable {name} is '{text}', but must be a number; start with torchrun or srun"
        )
    return int(text)


def _checked(launch: Launch) -> Launch:
    if launch.world < 1 or launch.rank >= launch.world:
        raise ConfigError(
            f"this process is rank {launch.rank} of {launch.world}, which is impossible; ranks count from 0 "
            "(RANK and WORLD_SIZE, or SLURM_PROCID and SLURM_NTASKS)"
        )
    if launch.world > 1 and not (launch.host and launch.port):
        raise ConfigError(
            f"{launch.world} processes were started, but MASTER_ADDR and MASTER_PORT do not say where rank 0 "
            "is; start with torchrun, or set both in the job's script"
        )
    return launch


def process_start() -> float:
    """The moment this program began, as a moment of ``time.monotonic()``.

    Linux tells when the process began (field 22 of /proc/self/stat, in clock ticks since the machine began).
    That may have been long before: a script that ends with ``exec nextword …`` becomes this process and its
    time is not ours. So not much before this file was loaded.
    """
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        ticks = float(fields[19]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks
    except (OSError, ValueError, IndexError, AttributeError):
        return _loaded
    return max(time.monotonic() - max(0.0, age), _loaded - MOST_STARTING)
