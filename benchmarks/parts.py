"""The step time of every modification, relative to vanilla, at the size of the bench: ours against ours.

    python benchmarks/parts.py [--only swiglu,retnet,...] [--rounds 3] [--profile NAME]

A step is loss, gradients and an AdamW update of 8 rows of 128 tokens, with a vocabulary of 4,096, in float32
on one thread. Vanilla and the modification take turns; a figure is the median over the rounds of the ratio
of their processor times. --profile: the slowest operations of one of them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from nextword.blocks import losses
from nextword.models.modifications import TABLE, Modification, language_model
from nextword.models.training import NeuralTrainSettings
from nextword.models.transformer import TRANSFORMER, TransformerSettings
from nextword.training.optimizers import make_optimizer
from nextword.training.update import settle

V, ROWS, LENGTH, STEPS = 4096, 8, 128, 2


def modifications() -> dict[str, Modification]:
    """All that a language model may have, by name."""
    from nextword.models.modern import MODERN

    return {each.name: each for each in (*TABLE, *MODERN) if each.sets is not None}


class Trained:
    """A network that learns from random text."""

    def __init__(self, row: Modification) -> None:
        values = {
            name.removeprefix("model."): value
            for name, value in language_model(row).items()
            if not name.startswith("train.") and not name.startswith("model.train.")
        }
        torch.manual_seed(0)
        self.network: Any = TRANSFORMER.build(TransformerSettings(**values), V, False)
        self.network.prepare(torch.ones(V))
        settings = NeuralTrainSettings(precision="fp32")
        self.optimizer = make_optimizer(self.network, settings)
        self.ids_BT = torch.randint(3, V, (ROWS, LENGTH + 1))

    def steps(self, count: int) -> float:
        """Make updates; return the processor time of each."""
        began = time.process_time()
        for _ in range(count):
            with losses.collecting() as found:
                features_BTD, _ = self.network.read(self.ids_BT[:, :-1], self.network.start(ROWS))
            loss = self.network.head.loss(features_BTD.flatten(0, 1), self.ids_BT[:, 1:].flatten())
            self.optimizer.clear()
            sum(found.values(), loss / self.ids_BT.numel()).backward()
            self.optimizer.step(1e-3)
            settle(self.network)
        return (time.process_time() - began) / count


def profile(row: Modification) -> None:
    """Print where the time goes."""
    trained = Trained(row)
    trained.steps(1)
    with torch.profiler.profile() as found:
        trained.steps(2)
    print(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=14, max_name_column_width=40))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = modifications()
    if options.profile:
        profile(rows[options.profile])
        return
    names = [name for name in options.only.split(",") if name] or [name for name in rows if name != "vanilla"]
    vanilla = Trained(rows["vanilla"])
    vanilla.steps(2)
    print(f"{'modification':34}{'ms a step':>10}{'/ vanilla':>10}")
    for name in names:
        own = Trained(rows[name])
        own.steps(1)
        turns = [(vanilla.steps(STEPS), own.steps(STEPS)) for _ in range(options.rounds)]
        ratio = statistics.median(after / before for before, after in turns)
        print(f"{name:34}{1000 * statistics.median(own for _, own in turns):10.1f}{ratio:10.2f}", flush=True)


if __name__ == "__main__":
    main()
