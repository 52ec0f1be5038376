"""The child process of `processor`: tries small products of every kind that networks use, and times them.

It is run as a file and needs nothing but torch. CPUID may promise instructions that a hypervisor does not let
through; whoever uses them dies of SIGILL. So each attempt, with a lower limit of instructions than the one
before, is a process of its own, forked here: torch is loaded once for all of them. The answer is one line of
JSON: the attempts in their order, each with the part that was reached, the signal that ended it (0: none),
and what was found.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

END = "end"  # what an attempt has reached that did everything
WIDTHS = (128, 512)  # of layers whose products are timed
_ROWS = 256  # words in a batch
_BATCH, _LENGTH = 32, 8  # rows and positions of a recurrent batch
_ROUNDS = 3  # both types take turns; the fastest turn of each counts, since others may use the processor
_EMULATED = 8.0  # times as long as float32: nothing in the processor does it


def linear(torch: Any, width: int, rows: int) -> Callable[[], None]:
    """A feed-forward layer, forward and backward."""
    x_ND = torch.ones(rows, width, requires_grad=True)
    inner, outer = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def work() -> None:
        outer(inner(x_ND)).float().sum().backward()

    return work


def lstm(torch: Any, width: int, rows: int) -> Callable[[], None]:
    """A recurrent layer as oneDNN has it, and an output layer of as many operations; forward and backward."""
    x_TBE = torch.ones(_LENGTH, rows, width, requires_grad=True)
    layer, outer = torch.nn.LSTM(width, width), torch.nn.Linear(width, 8 * width)

    def work() -> None:
        outer(layer(x_TBE)[0]).float().sum().backward()

    return work


def plain(torch: Any, width: int, rows: int) -> Callable[[], None]:
    """Products without autograd, of tensors that are of the type themselves."""
    x_ND, weight_DD = torch.ones(rows, width), torch.ones(width, width)

    def work() -> None:
        kind = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
        x, weight = x_ND.to(kind), weight_DD.to(kind)
        torch.addmm(x @ weight, x, weight)

    return work


KINDS = {"linear": linear, "lstm": lstm, "plain": plain}
TIMED = ("linear", "lstm")


def attempt(torch: Any, tell: Callable[[str], None]) -> dict[str, Any]:
    """Every kind in both types at a small size, then times; ``tell`` is called before each part.

    The answer: why bf16 is missing ("" where it is there), and how many times as fast as float32 it is.
    """
    torch.set_num_threads(1)  # CPU time is then that of the products alone, whatever else is running
    seconds = {}
    for name in ("fp32", "bf16"):
        try:
            seconds[name] = sum(small(torch, name, kind, tell) for kind in KINDS)
        except RuntimeError as error:
            if name == "fp32":
                raise
            return {"missing": str(error).split(".", 1)[0], "ratios": {}}
    times = seconds["bf16"] / seconds["fp32"]
    if times > _EMULATED:
        return {"missing": f"emulated, {times:.0f} times slower than float32", "ratios": {}}
    tell("times")
    ratios = {f"{kind} {width}": ratio_of(torch, kind, width) for kind in TIMED for width in WIDTHS}
    return {"missing": "", "ratios": ratios}


def small(torch: Any, name: str, kind: str, tell: Callable[[str], None]) -> float:
    """Seconds of the second turn of a small product."""
    tell(f"{name} {kind}")
    work = KINDS[kind](torch, 32, 8)
    run(torch, name, work)
    return run(torch, name, work)


def ratio_of(torch: Any, kind: str, width: int) -> float:
    """Time of float32 over time of bf16: above 1 where bf16 is faster."""
    work = KINDS[kind](torch, width, _ROWS if kind == "linear" else _BATCH)
    took: dict[str, list[float]] = {"fp32": [], "bf16": []}
    for _ in range(_ROUNDS):
        for name, found in took.items():
            found.append(run(torch, name, work))
    fp32, bf16 = (min(found[1:]) for found in took.values())
    return round(fp32 / bf16, 3)


def run(torch: Any, name: str, work: Callable[[], None]) -> float:
    """CPU seconds of one turn."""
    began = time.thread_time()
    with torch.autocast("cpu", torch.bfloat16, enabled=name == "bf16"):
        work()
    return time.thread_time() - began


def in_process(limit: str, torch: Any) -> dict[str, Any]:
    """One attempt in a forked process, with this limit of instructions ("": none)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if limit:
                os.environ["ONEDNN_MAX_CPU_ISA"] = limit  # oneDNN looks at it before its first product
            found = attempt(torch, lambda part: _write(writer, part))
            _write(writer, json.dumps(found))
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as lines:
        told = lines.read().split("\n")[:-1]
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 0:
        return {"limit": limit, "reached": END, "signal": 0, **json.loads(told[-1])}
    return {"limit": limit, "reached": told[-1] if told else "", "signal": max(0, -code)}


def _write(descriptor: int, line: str) -> None:
    os.write(descriptor, line.encode() + b"\n")


def main(limits: Sequence[str]) -> None:
    """Try limit after limit until all works, and print the answer."""
    import torch

    attempts: list[dict[str, Any]] = []
    for limit in limits:
        attempts.append(in_process(limit, torch))
        if attempts[-1]["reached"] == END:
            break
    print(json.dumps(attempts))


if __name__ == "__main__":
    main(sys.argv[1:])
