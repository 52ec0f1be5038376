"""Rendezvous: processes connect, exchange numbers, and report which of them failed.

Tensors go through torch.distributed (gloo on CPUs, NCCL on GPUs), other values as JSON through its key-value
store, never as pickles. A rank that fails leaves its error message in the store; the others look there for
the ranks that are lost, and one of them reports it.
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
from nextword.training.ranks import DisconnectedRank, Ranks

_COLLECT = 2.0  # seconds to wait for the messages of the ranks that are left
_ANSWER = 5 * _COLLECT  # seconds within which the store must answer
_SLICE = timedelta(seconds=1)  # of waiting, between two checks whether a rank has failed
_SHOWN = 8  # ranks listed in an error
_connection: dict[str, Store] = {}  # the store of this process, once it is connected
_runs = 0  # training runs of this process
Answer = TypeVar("Answer")


class DistributedRanks(Ranks):
    """One of several connected ranks; each training run has its own keys in the common store."""

    is_distributed = True

    def __init__(self, launch: Launch, store: Store, seconds: float) -> None:
        self.rank, self.world, self.seconds = launch.rank, launch.world, seconds
        self._store, self._messages = store, 0
        self._reports_rank_0 = launch.rank == 1 or launch.local_rank == 0

    def all_gather(self, *numbers: float) -> list[tuple[float, ...]]:
        """Exchange a few 64-bit numbers."""
        own = torch.tensor(numbers, dtype=torch.float64)
        every = [torch.empty_like(own) for _ in range(self.world)]
        dist.all_gather(every, own)
        return [tuple(row.tolist()) for row in every]

    def total(self, number: float) -> float:
        """Return the sum, which each rank computes in the same order."""
        return sum(own for (own,) in self.all_gather(number))

    def broadcast(self, value: Any) -> Any:
        """Send rank 0's value through the store."""
        self._messages += 1
        key = f"broadcast/{self._messages}"
        if self.is_first:
            self._store.set(key, json.dumps(value))
            return value
        return json.loads(self._read(key))

    def gather(self, value: Any) -> list[Any]:
        """Collect values through the store; rank 0 deletes them after reading."""
        self._messages += 1
        keys = [f"gather/{self._messages}/{rank}" for rank in range(self.world)]
        if not self.is_first:
            self._store.set(keys[self.rank], json.dumps(value))
            return []
        found = [value]
        for key in keys[1:]:
            found.append(json.loads(self._read(key)))
            self._store.delete_key(key)
        return found

    def disconnected(self) -> Ranks:
        """Return this rank without a connection."""
        return DisconnectedRank(self.rank, self.world)

    @contextmanager
    def reporting_failures(self) -> Iterator[None]:
        """Send an error of this rank to the others; explain a lost connection by naming the lost ranks."""
        try:
            yield
        except Exception as error:
            is_lost = is_connection(error)
            explained = self._error_to_raise("" if is_lost else str(error) or type(error).__name__)
            if explained is None and not is_lost:
                raise
            raise explained or error from error

    def leave(self) -> None:
        """Disconnect; rank 0 may host the store, so it leaves last."""
        if not self.is_first:
            self._store.set(f"done/{self.rank}", "")
            return
        with suppress(RuntimeError):
            keys = [f"done/{rank}" for rank in range(1, self.world)]
            self._store.wait(keys, timedelta(seconds=self.seconds))

    def _read(self, key: str) -> bytes:
        """Wait for a value, as long as no rank has failed."""
        until = time.monotonic() + self.seconds
        while True:
            try:
                self._store.wait([key], _SLICE)
                return self._store.get(key)
            except dist.DistStoreError:
                if time.monotonic() > until or self._store.check(["failed"]):
                    raise

    def _error_to_raise(self, own: str) -> NextwordError | None:
        """Return the error to raise; None: this rank's own error, which it reports."""
        try:
            messages, is_ours = _with_time_limit(lambda: self._exchange_failures(own))
        except RuntimeError:  # the store is lost with rank 0, which may have reported why
            is_silent = own or not self._reports_rank_0
            return Silent("rank 0 ended") if is_silent else TrainingError(lost([0], self.world, self.seconds))
        if not is_ours:
            return Silent("another rank reports why")
        if own:
            return None
        errors = [f"rank {rank}: {message}" for rank, message in sorted(messages.items()) if message]
        missing = [rank for rank in range(self.world) if rank not in messages]
        return TrainingError(errors[0] if errors else lost(missing, self.world, self.seconds))

    def _exchange_failures(self, own: str) -> tuple[dict[int, str], bool]:
        """Publish this rank's error; return those of the others, and whether this rank is to report them."""
        self._store.set(f"end/{self.rank}", own)
        self._store.set("failed", "")
        messages = {} if own and self.is_first else self._failures()
        return messages, self._store.add("reporter", 1) == 1

    def _failures(self) -> dict[int, str]:
        """Collect the error messages of the ranks that still answer."""
        until = time.monotonic() + _COLLECT
        keys = {rank: f"end/{rank}" for rank in range(self.world)}
        while time.monotonic() < until and not self._store.check(list(keys.values())):
            time.sleep(_COLLECT / 20)
        return {rank: self._store.get(key).decode() for rank, key in keys.items() if self._store.check([key])}


def connect(launch: Launch, seconds: float, device: torch.device) -> DistributedRanks:
    """Connect all ranks of the job; an error names those that did not connect in time."""
    global _runs
    if "store" not in _connection:
        _connection["store"] = _open_store(launch, seconds)
        _make_group(launch, seconds, device, _connection["store"])
        join()
    _runs += 1
    return DistributedRanks(launch, PrefixStore(f"training/{_runs}", _connection["store"]), seconds)


def _open_store(launch: Launch, seconds: float) -> Store:
    """Open the common store and wait there until every rank is connected."""
    timeout, place = timedelta(seconds=seconds), f"{launch.host}:{launch.port}"
    hosts = launch.is_first and not launch.has_agent
    try:
        server = TCPStore(launch.host, launch.port, None, hosts, timeout, wait_for_workers=False)
    except (RuntimeError, ValueError) as error:
        if hosts:
            raise TrainingError(
                f"rank 0 cannot listen at {place} (MASTER_ADDR and MASTER_PORT); another program may use "
                "the port, so choose another one"
            ) from error
        raise TrainingError(
            f"rank {launch.rank} of {launch.world} cannot reach rank 0 at {place} (MASTER_ADDR and "
            f"MASTER_PORT) within {seconds:g} s (train.timeout); check that it was started and that the "
            "port is open"
        ) from error
    store = PrefixStore(f"nextword/{launch.restarts}", server)
    keys = [f"here/{rank}" for rank in range(launch.world)]
    try:
        store.set(keys[launch.rank], "")
        store.wait(keys, timeout)
    except RuntimeError as error:
        raise _missing_ranks(launch, store, keys, seconds) from error
    return store


def _missing_ranks(launch: Launch, store: Store, keys: Sequence[str], seconds: float) -> NextwordError:
    """Return an error that names the missing ranks; only the first connected rank reports it."""
    try:
        missing = [rank for rank, key in enumerate(keys) if not store.check([key])]
    except RuntimeError:  # the store is lost with rank 0, which has reported it
        return Silent("rank 0 reports why")
    if launch.rank != min(set(range(launch.world)) - set(missing), default=launch.rank):
        return Silent("another rank reports why")
    join()
    return TrainingError(
        f"{_named(missing)} of {launch.world} did not connect within {seconds:g} s (train.timeout); check "
        "that they were started, or start fewer processes"
    )


def _make_group(launch: Launch, seconds: float, device: torch.device, store: Store) -> None:
    """Make the process group of torch.distributed."""
    backend = "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(launch.local_rank % torch.cuda.device_count())
        backend = "cpu:gloo,cuda:nccl"
    if not dist.is_initialized():
        dist.init_process_group(
            backend, store=PrefixStore("group", store), rank=launch.rank, world_size=launch.world,
            timeout=timedelta(seconds=seconds),
        )  # fmt: skip


def _with_time_limit(work: Callable[[], Answer]) -> Answer:
    """Return what the store answers; raise RuntimeError if the link to it is down and it never answers."""
    found: list[Answer] = []
    failed: list[RuntimeError] = []

    def ask() -> None:
        try:
            found.append(work())
        except RuntimeError as error:
            failed.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_ANSWER)
    if not found:
        raise failed[0] if failed else RuntimeError("the store does not answer")
    return found[0]


# gloo names itself in most of its errors; these are the others.
_OF_CONNECTIONS = (
    "gloo", "NCCL", "ProcessGroup", "pair closure", "closed by peer", "reset by peer", "Broken pipe",
    "Timed out waiting",
)  # fmt: skip


def is_connection(error: BaseException) -> bool:
    """Return whether an error came from the connection to other ranks."""
    return isinstance(error, dist.DistError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in _OF_CONNECTIONS)
    )


def lost(ranks: Sequence[int], world: int, seconds: float) -> str:
    """Return the error message about ranks that no longer answer."""
    if not ranks:
        return (
            f"the connection between the {world} ranks was lost; resume from the last checkpoint with the "
            "same command and --resume"
        )
    return (
        f"{_named(ranks)} of {world} failed or did not answer within {seconds:g} s (train.timeout); see the "
        "output there, then resume from the last checkpoint with the same command and --resume"
    )


def _named(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:_SHOWN]))
    more = f" and {len(ranks) - _SHOWN} more" if len(ranks) > _SHOWN else ""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {shown}{more}"
