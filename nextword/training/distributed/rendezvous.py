"""Several processes meet, exchange numbers, and say which of them is lost.

Tensors go through torch.distributed (gloo on processors, NCCL on graphics cards), words as JSON through its
key-value store, never as pickles. A rank that fails leaves its sentence in the store; the others find there
who was lost, and one of them tells it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]

from nextword.core.errors import NextwordError, TrainingError
from nextword.system.launch import Launch, Silent, join
from nextword.training.distributed.ranks import Apart, Ranks

_LOOK = 2.0  # seconds in which the ranks that are left tell that they are
_PATIENCE = 5 * _LOOK  # seconds in which the store must answer them
_SLICE = timedelta(seconds=1)  # of waiting, between two looks whether somebody has failed
_SHOWN = 8  # ranks that are named
_met: dict[str, Store] = {}  # the store of this process, once it has met the others
_trainings = 0
Answer = TypeVar("Answer")


class Many(Ranks):
    """One rank of several that have met; each training has keys of its own in the common store."""

    has_met = True

    def __init__(self, launch: Launch, store: Store, seconds: float) -> None:
        self.rank, self.world, self.seconds = launch.rank, launch.world, seconds
        self._store, self._said = store, 0
        self._speaks_for_first = launch.rank == 1 or launch.local_rank == 0

    def all_gather(self, *numbers: float) -> list[tuple[float, ...]]:
        """One exchange of a few 64-bit numbers."""
        own = torch.tensor(numbers, dtype=torch.float64)
        every = [torch.empty_like(own) for _ in range(self.world)]
        dist.all_gather(every, own)
        return [tuple(row.tolist()) for row in every]

    def total(self, number: float) -> float:
        """Summed by each rank in the same order."""
        return sum(own for (own,) in self.all_gather(number))

    def broadcast(self, value: Any) -> Any:
        """Through the store."""
        self._said += 1
        key = f"told/{self._said}"
        if self.is_first:
            self._store.set(key, json.dumps(value))
            return value
        return json.loads(self._read(key))

    def gather(self, value: Any) -> list[Any]:
        """Through the store, from which rank 0 takes them away."""
        self._said += 1
        keys = [f"said/{self._said}/{rank}" for rank in range(self.world)]
        if not self.is_first:
            self._store.set(keys[self.rank], json.dumps(value))
            return []
        found = [value]
        for key in keys[1:]:
            found.append(json.loads(self._read(key)))
            self._store.delete_key(key)
        return found

    def apart(self) -> Ranks:
        """The same rows."""
        return Apart(self.rank, self.world)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """What went wrong here is told to the others, and of a lost connection, who is lost."""
        try:
            yield
        except Exception as error:
            is_lost = is_connection(error)
            explained = self._explained("" if is_lost else str(error) or type(error).__name__)
            if explained is None and not is_lost:
                raise
            raise explained or error from error

    def leave(self) -> None:
        """Rank 0 may keep the store, so it goes last."""
        if not self.is_first:
            self._store.set(f"done/{self.rank}", "")
            return
        with suppress(RuntimeError):
            keys = [f"done/{rank}" for rank in range(1, self.world)]
            self._store.wait(keys, timedelta(seconds=self.seconds))

    def _read(self, key: str) -> bytes:
        """Wait for a word, as long as nobody has failed."""
        until = time.monotonic() + self.seconds
        while True:
            try:
                self._store.wait([key], _SLICE)
                return self._store.get(key)
            except dist.DistStoreError:
                if time.monotonic() > until or self._store.check(["failed"]):
                    raise

    def _explained(self, own: str) -> NextwordError | None:
        """The error to end with; None: our own, since nobody else tells anything."""
        try:
            told, is_ours = _answered(lambda: self._asked(own))
        except RuntimeError:  # the store is lost with rank 0, which may have told why
            is_silent = own or not self._speaks_for_first
            return Silent("rank 0 ended") if is_silent else TrainingError(lost([0], self.world, self.seconds))
        if not is_ours:
            return Silent("another rank tells why")
        if own:
            return None
        sentences = [f"rank {rank}: {said}" for rank, said in sorted(told.items()) if said]
        missing = [rank for rank in range(self.world) if rank not in told]
        return TrainingError(sentences[0] if sentences else lost(missing, self.world, self.seconds))

    def _asked(self, own: str) -> tuple[dict[int, str], bool]:
        """Say that and why we end; what the others have said, and whether it is ours to tell it."""
        self._store.set(f"end/{self.rank}", own)
        self._store.set("failed", "")
        told = {} if own and self.is_first else self._ended()
        return told, self._store.add("tells", 1) == 1

    def _ended(self) -> dict[int, str]:
        """What each rank that is left has said at its end."""
        until = time.monotonic() + _LOOK
        keys = {rank: f"end/{rank}" for rank in range(self.world)}
        while time.monotonic() < until and not self._store.check(list(keys.values())):
            time.sleep(_LOOK / 20)
        return {rank: self._store.get(key).decode() for rank, key in keys.items() if self._store.check([key])}


def meet(launch: Launch, seconds: float, device: torch.device) -> Many:
    """All ranks of the job, or a sentence that names those that did not come in time."""
    global _trainings
    if "store" not in _met:
        _met["store"] = _gather(launch, seconds)
        _form(launch, seconds, device, _met["store"])
        join()
    _trainings += 1
    return Many(launch, PrefixStore(f"training/{_trainings}", _met["store"]), seconds)


def _gather(launch: Launch, seconds: float) -> Store:
    """The common store, once every rank has told there that it is here."""
    timeout, place = timedelta(seconds=seconds), f"{launch.host}:{launch.port}"
    hosts = launch.is_first and not launch.has_agent
    try:
        server = TCPStore(launch.host, launch.port, None, hosts, timeout, wait_for_workers=False)
    except (RuntimeError, ValueError) as error:
        if hosts:
            raise TrainingError(
                f"rank 0 cannot listen at {place} (MASTER_ADDR and MASTER_PORT); another program may use the "
                "port, so choose another one"
            ) from error
        raise TrainingError(
            f"rank {launch.rank} of {launch.world} cannot reach rank 0 at {place} (MASTER_ADDR and "
            f"MASTER_PORT) within {seconds:g} s (train.timeout); look whether it was started, and whether "
            "the port is open"
        ) from error
    store = PrefixStore(f"nextword/{launch.restarts}", server)
    keys = [f"here/{rank}" for rank in range(launch.world)]
    try:
        store.set(keys[launch.rank], "")
        store.wait(keys, timeout)
    except RuntimeError as error:
        raise _late(launch, store, keys, seconds) from error
    return store


def _late(launch: Launch, store: Store, keys: Sequence[str], seconds: float) -> NextwordError:
    """Which ranks did not come: told by the first that did, who then is heard, and by nobody else."""
    try:
        missing = [rank for rank, key in enumerate(keys) if not store.check([key])]
    except RuntimeError:  # the store is gone with rank 0, which has told it
        return Silent("rank 0 tells why")
    if launch.rank != min(set(range(launch.world)) - set(missing), default=launch.rank):
        return Silent("another rank tells why")
    join()
    return TrainingError(
        f"{_named(missing)} of {launch.world} did not come within {seconds:g} s (train.timeout); look at "
        "what was started there, or start with fewer processes"
    )


def _form(launch: Launch, seconds: float, device: torch.device, store: Store) -> None:
    """The group of torch.distributed."""
    backend = "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(launch.local_rank % torch.cuda.device_count())
        backend = "cpu:gloo,cuda:nccl"
    if not dist.is_initialized():
        dist.init_process_group(
            backend, store=PrefixStore("group", store), rank=launch.rank, world_size=launch.world,
            timeout=timedelta(seconds=seconds),
        )  # fmt: skip


def _answered(work: Callable[[], Answer]) -> Answer:
    """What the store answers; where the link to it is down it never does, and a RuntimeError says so."""
    found: list[Answer] = []
    failed: list[RuntimeError] = []

    def ask() -> None:
        try:
            found.append(work())
        except RuntimeError as error:
            failed.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    if not found:
        raise failed[0] if failed else RuntimeError("the store does not answer")
    return found[0]


# gloo names itself in most of its errors, and in these not.
_OF_CONNECTIONS = (
    "gloo", "NCCL", "ProcessGroup", "pair closure", "closed by peer", "reset by peer", "Broken pipe",
    "Timed out waiting",
)  # fmt: skip


def is_connection(error: BaseException) -> bool:
    """Whether this came from the connection to other ranks."""
    return isinstance(error, dist.DistError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in _OF_CONNECTIONS)
    )


def lost(ranks: Sequence[int], world: int, seconds: float) -> str:
    """The sentence about ranks that answer no more."""
    if not ranks:
        return (
            f"the connection between the {world} ranks broke; go on from the last checkpoint with the same "
            "command and --resume"
        )
    return (
        f"{_named(ranks)} of {world} ended, or did not answer within {seconds:g} s (train.timeout); what was "
        "written there says why, and the same command with --resume goes on from the last checkpoint"
    )


def _named(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:_SHOWN]))
    more = f" and {len(ranks) - _SHOWN} more" if len(ranks) > _SHOWN else ""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {shown}{more}"
