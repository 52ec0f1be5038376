"""Training speed against loops in the manner of PyTorch's example and nanoGPT, `transformers` and `litgpt`.

    python benchmarks/train.py [--only lstm-200,lstm-650,lstm-200-adaptive,gpt-384,gpt-128,layers]
                               [--rounds 5] [--seconds 6] [--batch 8] [--threads 0] [--types]
    python benchmarks/train.py --agree 150

Everybody is a process of its own; they take turns, and a figure is the median of the turns, in wall time and
in CPU time (all threads). A peer runs twice: at stock settings, and with the allocator setting that our
program makes for itself (`same alloc.`), since most of the lead over a plain loop is that setting. `of peak`:
operations of the model's matrices a second, as a share of what a 2048 x 2048 product of the same type reaches
in the same run; on a busy machine look at the share by CPU seconds. The goal is a share of the faster type's
peak. --types: ours with each type of products forced, too. --agree: loss curves of our trainer and of plain
loops with the same weights, settings and batches.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from peers.gemm import Peer as Gemm
from peers.task import Task
from support import texts
from support.worker import Worker

WORDS = ["text.tokenizer=words", "text.unknown=literal"]
SGD = ["train.optimizer=sgd", "train.schedule=constant", "train.warmup=0", "train.clip=0.25", "train.decay=0",
       "train.weight_decay=0"]  # fmt: skip
ADAMW = ["train.optimizer=adamw", "train.betas=[0.9,0.99]", "train.weight_decay=0.1", "train.clip=1"]
GPT2 = [
    "model.position=learned",
    "model.norm=layernorm",
    "model.ffn=gelu",
    "model.qk_norm=none",
    "model.init=gpt2",
]
# The share of the faster type's product peak that our training is to reach.
GOALS = {("lstm", 200): 0.65, ("lstm", 650): 0.80, ("gpt", 384): 0.80}
SAME = " +allocator"  # after the name of a peer that is given our allocator setting
NAMES = {
    "example": "PyTorch example's loop", "nano": "nanoGPT's loop", "hugging": "transformers", "lit": "litgpt",
    "ours": "nextword", "plain": "nextword, its own defaults", "fp32": "nextword, float32 forced",
    "bf16": "nextword, bf16 forced",
}  # fmt: skip


class Bench:
    """The texts as files, and the rows."""

    def __init__(self, work: Path, args: argparse.Namespace) -> None:
        self.work, self.args = work, args

    def save(self, name: str, ids: np.ndarray) -> str:
        """Where every process finds the ids."""
        path = self.work / f"{name}.npy"
        np.save(path, ids)
        return str(path)

    def lstm(self, width: int, head: str = "softmax") -> None:
        """WikiText-2 words, 2 layers, 20 columns of 35 words."""
        folder = texts.corpus_folder("wikitext2")
        found = texts.words(*(folder / f"{split}.txt" for split in ("train", "valid", "test")))
        task = Task(
            self.save("words", found.train), found.vocab, "lstm", 2, width, batch=20, length=35,
            dropout=0.2, rate=20.0 if head == "softmax" else 4.0, text=str(folder / "train.txt"),
            options=["lstm", "model.tied=false", "model.scaling=none", f"model.head={head}",
                     "model.dropout_kind=plain", *WORDS, *SGD],  # masks as the example draws them
        )  # fmt: skip
        note = "" if head == "softmax" else ", ours with the adaptive softmax"
        self.row(f"LSTM 2x{width}, {found.vocab:,} words, B 20, T 35{note}", task, ["example"])

    def gpt(self, layers: int, width: int, heads: int, length: int, batch: int, peers: list[str]) -> None:
        """Characters of tiny Shakespeare."""
        path = texts.corpus_folder("tinyshakespeare") / "input.txt"
        found = texts.characters(path, path)
        task = Task(
            self.save("characters", found.train), found.vocab, "gpt", layers, width, heads, batch, length,
            dropout=0.0, rate=1e-3, text=str(path),
            options=["transformer", f"model.context={length}", f"model.heads={heads}",
                     "text.tokenizer=characters", *GPT2, *ADAMW],
        )  # fmt: skip
        self.row(f"GPT {layers}x{width}, T {length}, B {batch}", task, peers, own_defaults=True)

    def agree(self, steps: int) -> None:
        """Loss curves at equal settings and weights, for an LSTM of words and a GPT of characters."""
        from support.agree import curves

        path = str(texts.corpus_folder("tinyshakespeare") / "input.txt")
        lstm = Task("", 0, "lstm", 2, 200, batch=20, length=35, text=path)
        gpt = Task("", 0, "gpt", 4, 128, 4, 12, 64, dropout=0.0, text=path)
        sizes = ["model.layers={0.layers}", "model.hidden={0.width}", "train.batch={0.batch}"]
        sizes += ["train.length={0.length}", "train.rate=5e-4"]
        for name, task, sets in (
            ("LSTM 2x200, words", lstm, ["model.tied=false", "model.scaling=none", "text.tokenizer=words",
                                         "text.max_vocab=5000"]),
            ("GPT 4x128, characters", gpt, [*GPT2, "model.context=64", "model.heads=4",
                                           "text.tokenizer=characters"]),
        ):  # fmt: skip
            ours, theirs = curves(task, [*sets, *(size.format(task) for size in sizes)], steps)
            worst = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
            print(
                f"{name}: {steps} steps from {ours[0]:.4f} to {ours[-1]:.4f}, largest difference {worst:.1e}"
            )

    def layers(self) -> None:
        """Single recurrent layers against torch.nn."""
        from support.layers import compare

        compare(self.args.rounds, self.args.threads)

    def row(self, title: str, task: Task, peers: list[str], own_defaults: bool = False) -> None:
        """All take turns; one line each."""
        task = replace(task, steps=1_000_000)  # schedules stay at their height
        if self.args.threads:
            task = replace(task, options=[*task.options, f"train.threads={self.args.threads}"])
        both = [name for peer in peers for name in (peer, peer + SAME)]
        tasks = dict.fromkeys(["ours", *both, "gemm"], task)
        tasks["gemm bf16"] = replace(task, options=["bf16"])
        if own_defaults:
            tasks["plain"] = replace(task, options=[o for o in task.options if o not in GPT2])
        for kind in ("fp32", "bf16") if self.args.types else ():
            tasks[kind] = replace(task, options=[*task.options, f"train.precision={kind}"])
        peer = dict.fromkeys(("plain", "fp32", "bf16"), "ours")
        workers = {
            n: Worker(peer.get(n, n.split()[0]), each, self.args.threads, n.endswith(SAME))
            for n, each in tasks.items()
        }
        types = dict.fromkeys(workers, "fp32")
        turns = dict.fromkeys(workers, 2)
        for name, worker in workers.items():
            first = worker.run(2)["wall"] / 2  # memory, kernels and threads are there afterwards
            answer = worker.run(2)
            again, types[name] = answer["wall"] / 2, answer["type"]
            turns[name] = max(1, round(self.args.seconds / min(first, again)))
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in workers}
        for _ in range(self.args.rounds):
            for name, worker in workers.items():
                took = worker.run(turns[name])
                found[name].append((took["wall"] / turns[name], took["cpu"] / turns[name]))
        for worker in workers.values():
            worker.close()
        report(title, task, {name: median(times) for name, times in found.items()}, types)


def median(times: list[tuple[float, float]]) -> tuple[float, float]:
    """Of wall and of CPU seconds a step."""
    wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
    return wall, cpu


def report(title: str, task: Task, seconds: dict[str, tuple[float, float]], types: dict[str, str]) -> None:
    """Tokens a second, the share of the peak of the type used, and how many times as fast we are."""
    peaks = {
        kind: [Gemm.operations / each for each in seconds.pop(name)]  # a wall second, a CPU second
        for kind, name in (("fp32", "gemm"), ("bf16", "gemm bf16"))
    }
    shown = ", ".join(f"{kind} {peak[0] / 1e9:.0f}" for kind, peak in peaks.items())
    print(f"\n{title}: {task.operations / 1e9:.1f} GFLOP a step; GEMM peaks in GFLOP/s: {shown}")
    heads = ("tokens/s", "ms a step", "CPU ms", "type", "of peak", "of it, CPU", "ours x wall", "x CPU")
    same = ("same alloc.", "x CPU")
    print(" " * 28 + "".join(f"{head:>12}" for head in (*heads, *same)))
    ours = seconds["ours"]
    for name, times in seconds.items():
        if name.endswith(SAME):
            continue  # two cells of the peer's line
        peak = peaks[types[name]]
        shares = [task.operations / each / most for each, most in zip(times, peak, strict=True)]
        cells = [f"{task.tokens / times[0]:,.0f}", *(f"{1000 * each:.1f}" for each in times), types[name]]
        cells += [f"{share:.0%}" for share in shares]
        if name != "ours":
            for each in (times, seconds.get(name + SAME, ())):
                cells += [f"{other / own:.2f}" for other, own in zip(each, ours, strict=False)]
        print(f"{NAMES[name]:<28}" + "".join(f"{cell:>12}" for cell in cells), flush=True)
    if (goal := GOALS.get((task.kind, task.width))) and "model.head=adaptive" not in task.options:
        shares = [
            task.operations / took / max(peak[place] for peak in peaks.values())
            for place, took in enumerate(ours)
        ]
        print(
            f"ours: {shares[0]:.0%} of the faster type's peak, {shares[1]:.0%} by CPU; the goal is {goal:.0%}"
        )


def main() -> None:
    """Run the rows that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="lstm-200,lstm-650,lstm-200-adaptive,lstm-650-adaptive,gpt-384,gpt-128"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0, help="of one turn")
    parser.add_argument("--threads", type=int, default=0, help="of everybody; 0: as each decides")
    parser.add_argument("--agree", type=int, default=0, metavar="STEPS", help="compare loss curves instead")
    parser.add_argument("--types", action="store_true", help="force each type of products, too")
    parser.add_argument("--batch", type=int, default=8, help="rows of the GPT 6x384")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), args)
        rows = {
            "lstm-200": lambda: bench.lstm(200),
            "lstm-650": lambda: bench.lstm(650),
            "lstm-200-adaptive": lambda: bench.lstm(200, "adaptive"),
            "lstm-650-adaptive": lambda: bench.lstm(650, "adaptive"),
            "gpt-384": lambda: bench.gpt(6, 384, 6, 256, args.batch, ["nano", "lit", "hugging"]),
            "gpt-128": lambda: bench.gpt(4, 128, 4, 64, 12, ["nano", "lit", "hugging"]),
            "layers": bench.layers,
        }
        if args.agree:
            bench.agree(args.agree)
            return
        for each in args.only.split(","):
            rows[each]()


if __name__ == "__main__":
    main()
