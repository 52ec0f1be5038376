"""``torchrun -m nextword train``: the processes meet, and what is special when there are several.

Rank 0 alone writes and tells. After torchrun has started all of them again, the training goes on by itself.
"""

from __future__ import annotations

import os

from nextword.core.errors import ConfigError
from nextword.core.family import NetworkFamily
from nextword.runs.settings import RunSettings
from nextword.store import replace
from nextword.store.unfinished import FOLDER, checkpoints_in
from nextword.store.writing import NewRun, real_path
from nextword.system.launch import Launch
from nextword.training.distributed.ranks import Ranks

_TIMEOUT = 600.0  # seconds, where the settings say nothing


def meet(launch: Launch, settings: RunSettings, device: str, resume: bool) -> Ranks:
    """The ranks of a job of several processes. With ``resume`` the model is not known before they meet."""
    if not resume:
        check(settings, launch.world)
    from nextword.models.precision import find_device
    from nextword.training.distributed.rendezvous import meet as meet_others

    return meet_others(launch, getattr(settings.train, "timeout", _TIMEOUT), find_device(device))


def check(settings: RunSettings, world: int) -> None:
    """Only networks are trained by several processes."""
    if world > 1 and not isinstance(settings.find_family(), NetworkFamily):
        raise ConfigError(
            f"a {settings.family} is made by one process, and {world} were started; start it without "
            "torchrun or srun, or choose a neural model, as in --model transformer"
        )


def restart_options(
    launch: Launch, out: str | os.PathLike[str] | None, resume: bool, overwrite: bool, ranks: Ranks
) -> tuple[bool, bool]:
    """Whether to resume and to overwrite: as asked, and after a restart from the last checkpoint."""
    if launch.may_restart and out is None:
        raise ConfigError(
            "torchrun may start this training again (--max-restarts), and then it must be found; name its "
            "folder with --out RUN"
        )
    if not launch.restarts or out is None:
        return resume, overwrite
    has_begun = bool(checkpoints_in(real_path(out)))
    now = ranks.broadcast([has_begun or not overwrite, overwrite and not has_begun])
    return bool(now[0]), bool(now[1])


def clear(run: NewRun, launch: Launch, overwrite: bool) -> None:
    """``--overwrite``, where a restart may come: what another training has left would be taken for ours."""
    if overwrite and launch.may_restart:
        replace.remove(run.target / FOLDER)
