"""Recurrent layers alone, forward and backward: ours against torch.nn, in turns in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from nextword.system.allocator import keep_big_arrays

keep_big_arrays()  # for both sides, since they share the process

import torch  # noqa: E402 - the allocator comes first
from torch import Tensor, nn  # noqa: E402

from nextword.core.catalog import find  # noqa: E402

SHAPES = ((20, 35, 200), (20, 35, 650), (32, 128, 512))  # B, T, H
PAIRS = (("mingru", "LSTM"), ("lstm", "LSTM"), ("gru-torch", "GRU"), ("gru", "GRU"), ("rnn", "RNN"))


def compare(rounds: int, threads: int) -> None:
    """One line for each pair and shape."""
    if threads:
        torch.set_num_threads(threads)
    for ours, theirs in PAIRS:
        for B, T, H in SHAPES:
            mine, other = _ours(ours, B, T, H), _torch(theirs, B, T, H)
            times: tuple[list[tuple[float, float]], ...] = ([], [])
            for _ in range(rounds + 1):  # the first one is for warming up
                for found, work in zip(times, (mine, other), strict=True):
                    found.append(_timed(work))
            (wall, cpu), (wall_, cpu_) = (
                [statistics.median(column) for column in zip(*found[1:], strict=True)] for found in times
            )
            print(
                f"{ours:<10} B {B}, T {T}, H {H}: {1000 * wall:7.1f} ms, nn.{theirs} {1000 * wall_:7.1f} ms, "
                f"ratio {wall_ / wall:.2f} wall, {cpu_ / cpu:.2f} CPU",
                flush=True,
            )


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(3):
        work()
    return (time.perf_counter() - wall) / 3, (time.process_time() - cpu) / 3


def _ours(name: str, B: int, T: int, H: int) -> Callable[[], None]:
    layer, x_TBE = find("cell", name)(H, H), torch.randn(T, B, H, requires_grad=True)
    state = tuple(torch.zeros(B, H) for _ in range(layer.parts))

    def work() -> None:
        h_TBH, _ = layer.read(x_TBE, state)
        _back(h_TBH, layer, x_TBE)

    return work


def _torch(name: str, B: int, T: int, H: int) -> Callable[[], None]:
    layer, x_TBE = getattr(nn, name)(H, H), torch.randn(T, B, H, requires_grad=True)

    def work() -> None:
        h_TBH, _ = layer(x_TBE)
        _back(h_TBH, layer, x_TBE)

    return work


def _back(h_TBH: Tensor, layer: nn.Module, x_TBE: Tensor) -> None:
    layer.zero_grad(set_to_none=True)
    x_TBE.grad = None
    h_TBH.sum().backward()
