"""What checkpoints cost: seconds a save takes, and its share of the time at the default interval.

    python benchmarks/saving.py [--only lstm-200,gpt-384] [--saves 7] [--every 5] [--watch 0] [--threads 0]

A real training writes a checkpoint every few steps (weights, optimiser, best weights, tokenizer, rows, with
hashes and on disk), and each is timed. By default one is written every two minutes, or as seldom as is needed
to cost at most a twentieth of the time; the share is that of the median save. --watch trains for so many
seconds at that default instead, and says what was spent.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support import texts

from nextword.api.train import Order, run
from nextword.core.events import Event, Step
from nextword.system.allocator import keep_big_arrays
from nextword.training.checkpointing import EVERY, SHARE, Checkpointer

MODELS = {
    "lstm-200": (
        "LSTM 2x200, WikiText-2 words", "wikitext2", "train.txt",
        {"model": "lstm", "tokenizer": "words"},
        {"model.hidden": 200, "model.layers": 2, "train.batch": 20, "train.length": 35},
    ),
    "gpt-384": (
        "GPT 6x384, T 256, characters of tiny Shakespeare", "tinyshakespeare", "input.txt",
        {"model": "transformer", "tokenizer": "characters"},
        {"model.hidden": 384, "model.layers": 6, "model.heads": 6, "model.context": 256, "train.batch": 8},
    ),
}  # fmt: skip


@dataclass
class Costs:
    """What was spent for saves and for steps."""

    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    size: int = 0  # bytes of a checkpoint
    steps: int = 0
    seconds: float = 0.0  # from the first step on


def timed(costs: Costs) -> Any:
    """Measure every save of all trainings from now on; returns what puts the old way back."""
    real = Checkpointer._save

    def save(self: Checkpointer, *rest: Any) -> Iterator[Event]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield from real(self, *rest)
        costs.walls.append(time.perf_counter() - wall)
        costs.cpus.append(time.process_time() - cpu)
        found = max((self.run.target / "checkpoint").glob("ckpt-*"), default=None)
        costs.size = 0 if found is None else sum(path.stat().st_size for path in found.iterdir())

    Checkpointer._save = save  # type: ignore[method-assign]
    return lambda: setattr(Checkpointer, "_save", real)


def train(order: Order, out: Path, saves: int, seconds: float) -> Costs:
    """Train until there were so many saves, or so many seconds are over."""
    costs, began = Costs(), 0.0
    undo = timed(costs)
    events = run(order, out)
    try:
        for event in events:
            if isinstance(event, Step):
                began = began or time.perf_counter()
                costs.steps, costs.seconds = event.step, time.perf_counter() - began
            if (saves and len(costs.walls) >= saves) or (seconds and costs.seconds >= seconds):
                break
    finally:
        events.close()  # type: ignore[attr-defined]
        undo()
    return costs


def row(name: str, work: Path, args: argparse.Namespace) -> None:
    """One model."""
    title, corpus, file, about, sets = MODELS[name]
    every = {} if args.watch else {"train.save_every": args.every}
    order = Order(
        (str(texts.corpus_folder(corpus) / file),), **about, seed=0,
        sets={"train.steps": 10**7, "train.valid_every": 3, "train.valid_tokens": 2000,
              "train.threads": args.threads, **sets, **every},
    )  # fmt: skip
    costs = train(order, work / name, 0 if args.watch else args.saves, args.watch)
    print(title)
    if args.watch:
        spent = sum(costs.walls)
        print(
            f"    {costs.steps:,} steps in {costs.seconds:,.0f} s, {len(costs.walls)} saves: {spent:.2f} s, "
            f"{100 * spent / costs.seconds:.2f} % of the time"
        )
        return
    wall, cpu = statistics.median(costs.walls), statistics.median(costs.cpus)
    pause = max(EVERY, wall / SHARE)
    print(
        f"    {costs.size / 1e6:,.1f} MB a checkpoint; a save takes {wall:.3f} s ({min(costs.walls):.3f} to "
        f"{max(costs.walls):.3f}; CPU {cpu:.3f} s); every {pause:.0f} s: "
        f"{100 * wall / (pause + wall):.2f} % of the time"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--saves", type=int, default=7)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--watch", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    keep_big_arrays()
    with tempfile.TemporaryDirectory(prefix="nextword-saving-", dir=".") as work:
        for name in args.only.split(","):
            row(name, Path(work), args)


if __name__ == "__main__":
    main()
