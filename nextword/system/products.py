"""The child process of `processor`: tries small matrix products of every kind networks use, and times them.

It is run as a script and needs nothing but torch. CPUID may advertise instructions that a hypervisor does
not allow; using them ends in SIGILL. So each attempt, with a lower limit of instructions than the one before,
is a process of its own, forked here so that torch is loaded only once. The answer is one line of JSON: the
attempts in order, each with the part it reached, the signal that ended it (0: none), and what it
found.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

END = "end"  # reached by an attempt that did everything
WIDTHS = (128, 512)  # layer widths whose products are timed
_ROWS = 256  # tokens in a batch
_BATCH, _LENGTH = 32, 8  # rows and positions of a recurrent batch
_ROUNDS = 3  # both types take turns; the fastest turn counts, since other programs run too
_EMULATED = 8.0  # times slower than float32: emulated in software


def linear(torch: Any, width: int, rows: int) -> Callable[[], None]:
    """Return a feed-forward layer, forward and backward."""
    x_ND = torch.ones(rows, width, requires_grad=True)
    inner, outer = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def work() -> None:
        outer(inner(x_ND)).float().sum().backward()

    return work


def lstm(torch: Any, width: int, rows: int) -> Callable[[], None]:
    """Return a recurrent layer as oneDNN has it, with an output layer of equal cost; forward and backward."""
    x_TBE = torch.ones(_LENGTH, rows, width, requires_grad=True)
    layer, outer = torch.nn.LSTM(width, width), torch.nn.Linear(width, 8 * width)

    def work() -> None:
        outer(layer(x_TBE)[0]).float().sum().backward()

    return work


def plain(torch: Any, width: int, rows: int) -> Callable[[], None]:
    """Return products without autograd, of tensors that have the type themselves."""
    x_ND, weight_DD = torch.ones(rows, width), torch.ones(width, width)

    def work() -> None:
        kind = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
        x, weight = x_ND.to(kind), weight_DD.to(kind)
        torch.addmm(x @ weight, x, weight)

    return work


KINDS = {"linear": linear, "lstm": lstm, "plain": plain}
TIMED = ("linear", "lstm")


def attempt(torch: Any, tell: Callable[[str], None]) -> dict[str, Any]:
    """Run every kind in both types at a small size, then time them; ``tell`` is called before each part.

    The answer says why bf16 is missing ("" if it is not), and how much faster than float32 it is.
    """
    torch.set_num_threads(1)  # so that CPU time is that of the products alone
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
    """Return the seconds of the second run of a small product."""
    tell(f"{name} {kind}")
    work = KINDS[kind](torch, 32, 8)
    run(torch, name, work)
    return run(torch, name, work)


def ratio_of(torch: Any, kind: str, width: int) -> float:
    """Return the time of float32 over the time of bf16: above 1 where bf16 is faster."""
    work = KINDS[kind](torch, width, _ROWS if kind == "linear" else _BATCH)
    took: dict[str, list[float]] = {"fp32": [], "bf16": []}
    for _ in range(_ROUNDS):
        for name, found in took.items():
            found.append(run(torch, name, work))
    fp32, bf16 = (min(found[1:]) for found in took.values())
    return round(fp32 / bf16, 3)


def run(torch: Any, name: str, work: Callable[[], None]) -> float:
    """Return the CPU seconds of one run."""
    began = time.thread_time()
    with torch.autocast("cpu", torch.bfloat16, enabled=name == "bf16"):
        work()
    return time.thread_time() - began


def in_process(limit: str, torch: Any) -> dict[str, Any]:
    """Run one attempt in a forked process, with this limit of instructions ("": none)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if limit:
                os.environ["ONEDNN_MAX_CPU_ISA"] = limit  # oneDNN reads it before its first product
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
    """Try one limit after another until everything works, and print the answer."""
    import torch

    attempts: list[dict[str, Any]] = []
    for limit in limits:
        attempts.append(in_process(limit, torch))
        if attempts[-1]["reached"] == END:
            break
    print(json.dumps(attempts))


if __name__ == "__main__":
    main(sys.argv[1:])
