"""``torchrun -m nextword train``: connect the processes, and resume after a restart.

Only rank 0 writes files and reports. After torchrun has restarted the processes, training resumes by itself.
"""

from __future__ import annotations

import os

from nextword.core.errors import ConfigError
from nextword.core.family import NetworkFamily
from nextword.models.training import NeuralTrainSettings
from nextword.runs.settings import RunSettings
from nextword.store import replace
from nextword.store.unfinished import FOLDER, checkpoints_in
from nextword.store.writing import NewRun, real_path
from nextword.system.launch import Launch
from nextword.training.ranks import Ranks

_TIMEOUT = 600.0  # seconds, if the settings have none


def connect_ranks(launch: Launch, settings: RunSettings, device: str, resume: bool) -> Ranks:
    """Connect the processes of a job. With ``resume`` the model is not known before that."""
    if not resume:
        check_family(settings, launch.world)
    from nextword.models.precision import find_device
    from nextword.training.distributed.rendezvous import connect

    return connect(launch, _timeout(settings), find_device(device))


def check_family(settings: RunSettings, world: int) -> None:
    """Refuse families other than networks where there are several processes."""
    if world > 1 and not isinstance(settings.find_family(), NetworkFamily):
        raise ConfigError(
            f"a {settings.family} is trained by one process, but {world} were started; run it without "
            "torchrun or srun, or choose a neural model, as in --model transformer"
        )


def options_after_restart(
    launch: Launch, out: str | os.PathLike[str] | None, resume: bool, overwrite: bool, ranks: Ranks
) -> tuple[bool, bool]:
    """Return whether to resume and to overwrite: as given, or after a restart by what is on disk."""
    if launch.may_restart and out is None:
        raise ConfigError(
            "torchrun may restart this training run (--max-restarts), so its folder must be known; name it "
            "with --out RUN"
        )
    if not launch.restarts or out is None:
        return resume, overwrite
    has_checkpoint = bool(checkpoints_in(real_path(out)))
    now = ranks.broadcast([has_checkpoint or not overwrite, overwrite and not has_checkpoint])
    return bool(now[0]), bool(now[1])


def remove_old_checkpoints(run: NewRun, launch: Launch, overwrite: bool) -> None:
    """Remove the checkpoints of an overwritten run, so that a restart does not resume from them."""
    if overwrite and launch.may_restart:
        replace.remove(run.target / FOLDER)


def _timeout(settings: RunSettings) -> float:
    return settings.train.timeout if isinstance(settings.train, NeuralTrainSettings) else _TIMEOUT
