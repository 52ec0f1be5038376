"""Encoder-decoders against JoeyNMT and CTranslate2, in turns: training, greedy and beam search.

    python benchmarks/seq2seq.py --joey PYTHON --work FOLDER [--only train,rnn,joey,ct2,int8] [--rounds 5]
                                 [--steps 6] [--sentences 512] [--trained 200] [--length 0] [--threads 1]

--joey: the Python of an environment of its own with ``pip install --no-deps joeynmt==2.3.0`` and what its
model and search import (torch==2.13.0, numpy, pandas, pyyaml, sacrebleu, sentencepiece, subword-nmt,
packaging, sacremoses, 'importlib-metadata<9', tqdm). CTranslate2 is a part of ours (``.[export]``).

Multi30k, German to English, the same subwords for all. Everybody is a process of its own with one thread and
takes its turn; figures are medians of real target tokens a CPU second (and by wall time). Training: batches
of as many tokens as JoeyNMT's sampler counts, padding included; ours holds the same number of positions of
source and target together. Decoding: 64 sentences at a time, the weights are those of one run that is trained
first and kept in FOLDER, so that all write the same texts; the share of equal ones is printed. With --length
L every text has L tokens, END never comes: then --trained 1 is enough, and sorting by length and leaving the
batch early, which JoeyNMT does not do, bring us nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from peers.turns import Turns
from support import texts
from support.worker import SAME_ALLOCATOR

HERE = Path(__file__).resolve().parents[1]
SHAPE = {"layers": 3, "hidden": 256, "inner": 1024, "heads": 4, "dropout": 0.1}
JOEY = {  # the Transformer that JoeyNMT has
    "model.layers": 3, "model.hidden": 256, "model.inner": 1024, "model.heads": 4, "model.norm": "layernorm",
    "model.bias": True, "model.ffn": "relu", "model.qk_norm": "none", "model.dropout": 0.1,
    "model.position": "sinusoidal", "model.embedding_kind": "scaled", "model.head_bias": False,
    "model.norm_eps": 1e-6, "text.size": 6000,
}  # fmt: skip
RECURRENT = {
    "model.layers": 1, "model.hidden": 256, "model.attend": "after", "model.attention": "mlp",
    "model.readout": "linear", "model.dropout": 0.1, "text.size": 6000,
}  # fmt: skip
BATCH, ROWS, BEAM, ALPHA = 2048, 64, 5, 0.6
Speeds = dict[str, list[dict[str, float]]]


class Bench:
    """The files of all rows, and the processes of one."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.work = args, args.work.resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.data = texts.corpus_folder("multi30k-en-de")
        self._table("train")
        (self.work / "test.de").write_bytes((self.data / "test_2016_flickr.de").read_bytes())

    def _table(self, name: str) -> None:
        sides = [(self.data / f"{name}.{tongue}").read_text("utf-8").split("\n") for tongue in ("de", "en")]
        rows = (f"{source}\t{target}\n" for source, target in zip(*sides, strict=True) if source)
        (self.work / f"{name}.tsv").write_text("".join(rows), "utf-8")

    def run(self) -> Any:
        """Return the trained run, made once."""
        from nextword.runs.saved import load

        folder = self.work / "run"
        if not folder.exists():
            command = [
                sys.executable, "-m", "nextword", "train", f"{self.work}/train.tsv", "--task", "translate",
                "--model", "transformer", "--out", str(folder), "--set", f"train.steps={self.args.trained}",
                "--set", "data.hold_out=0",
            ]  # fmt: skip
            for key, value in JOEY.items():
                command += ["--set", f"{key}={str(value).lower()}"]
            subprocess.run(command, check=True, cwd=HERE, stdout=subprocess.DEVNULL)
        return load(folder)

    def task(self, **given: Any) -> str:
        """Write what a process has to do, and return the file."""
        plain = {
            **SHAPE, "kind": "transformer", "smoothing": 0.1, "rate": 1e-3, "batch": BATCH, "rows": ROWS,
            "beam": BEAM, "alpha": ALPHA, "weights": "", "pairs": "", "out": str(self.work),
            "length": self.args.length,
            "texts": str(self.work / "test.de"), "source": [], "target": [], "test": [],
        }  # fmt: skip
        path = self.work / "task.json"
        path.write_text(json.dumps(plain | given), "utf-8")
        return str(path)

    def process(self, python: str, module: str, task: str, allocator: bool = False) -> Turns:
        """Start a process and wait until it is ready."""
        environment = {"OMP_NUM_THREADS": str(self.args.threads), "PYTHONPATH": ""}
        if python == sys.executable:
            environment["PYTHONPATH"] = str(HERE)
        return Turns(python, module, task, environment=environment | (SAME_ALLOCATOR if allocator else {}))

    def turns(self, works: dict[str, tuple[Turns, str]], number: int) -> Speeds:
        """Let all warm up, then take turns."""
        for process, verb in works.values():
            process.run(verb, number)
        found: Speeds = {name: [] for name in works}
        for _ in range(self.args.rounds):
            for name, (process, verb) in works.items():
                found[name].append(process.run(verb, number))
        return found


def train(bench: Bench) -> None:
    """Train Transformers."""
    _train(bench, "Transformer 3+3 x 256, inner 1,024", "transformer", JOEY, {})


def rnn(bench: Bench) -> None:
    """Train recurrent networks with input feeding."""
    shape = {"kind": "rnn", "layers": 1}
    _train(bench, "LSTM 1 x 256, MLP attention, input feeding", "lstm", RECURRENT, shape)


def _train(bench: Bench, title: str, family: str, sets: dict[str, Any], shape: dict[str, Any]) -> None:
    run = bench.run()
    sides = {}
    for side, tongue in (("source", "de"), ("target", "en")):
        lines = (bench.data / f"train.{tongue}").read_text("utf-8").rstrip("\n").split("\n")
        sides[side] = [[int(index) for index in run.vocabulary.target.encode(line)] for line in lines]
    size = run.vocabulary.vocab_size
    theirs = bench.task(vocabulary=size, **shape, **sides)
    works = {"JoeyNMT": (bench.process(bench.args.joey, "peers.joey", theirs), "train")}
    works["JoeyNMT, same allocator"] = (bench.process(bench.args.joey, "peers.joey", theirs, True), "train")
    for name, kind in (("ours", "auto"), ("ours, float32", "fp32")):
        own = {
            **sets, "data.hold_out": 0.0, "train.precision": kind, "train.batch": 2 * BATCH // 30,
            "text.tokenizer": str(bench.work / "run" / "tokenizer.json"),
        }  # fmt: skip
        del own["text.size"]
        task = bench.task(family=family, sets=own, pairs=str(bench.work / "train.tsv"))
        works[name] = (bench.process(sys.executable, "peers.our_translator", task), "train")
    for name in ("ours", "JoeyNMT"):
        print(f"{name}: {works[name][0].run('weights', 0)['words']:,} weights")
    show(f"training, {title}", bench.turns(works, bench.args.steps))
    close(works)


def joey(bench: Bench) -> None:
    """Decode with JoeyNMT and our weights."""
    from support.joey_weights import write_weights

    run = bench.run()
    write_weights(run.model.network, bench.work / "joey.npz")
    task = bench.task(
        vocabulary=run.vocabulary.vocab_size, weights=str(bench.work / "joey.npz"), test=sources(bench, run)
    )
    peer = bench.process(bench.args.joey, "peers.joey", task)
    decode(bench, {"JoeyNMT": peer}, ("greedy", "beam"), "joey")


def ct2(bench: Bench) -> None:
    """Decode with CTranslate2 in float32."""
    decode(bench, {"CTranslate2 float32": exported(bench, "float32")}, ("greedy", "beam"), "ct2")


def int8(bench: Bench) -> None:
    """Decode with CTranslate2 in int8, ours in both types."""
    peers = {"CTranslate2 int8": exported(bench, "int8")}
    decode(bench, peers, ("greedy", "beam", "greedy8", "beam8"), "ct2")


def exported(bench: Bench, kind: str) -> Turns:
    """Return CTranslate2 with the weights of our run."""
    from nextword.core.events import finish
    from nextword.formats.ctranslate2 import write_ctranslate2

    run, folder = bench.run(), bench.work / "exported"
    if not folder.exists():
        finish(write_ctranslate2(folder, run.model, run.settings.model, run.vocabulary))
    task = bench.task(exported=str(folder), type=kind, test=sources(bench, run))
    return bench.process(sys.executable, "peers.ct2", task)


def sources(bench: Bench, run: Any) -> list[list[int]]:
    """Return the tokens of the test sentences."""
    lines = (bench.work / "test.de").read_text("utf-8").rstrip("\n").split("\n")
    return [[int(index) for index in run.vocabulary.source.encode(line)] for line in lines]


def decode(bench: Bench, peers: dict[str, Turns], verbs: tuple[str, ...], name: str) -> None:
    """Compare all ways to search."""
    task = bench.task(run=str(bench.work / "run"))
    ours = bench.process(sys.executable, "peers.our_translator", task)
    count = bench.args.sentences
    for verb in verbs:
        plain = verb.rstrip("8")
        works = {"ours" + (" int8" if plain != verb else ""): (ours, verb)}
        works |= {peer: (process, plain) for peer, process in peers.items()}
        title = "greedy" if plain == "greedy" else f"beam {BEAM}"
        show(f"{title}, {count} sentences, {ROWS} at a time", bench.turns(works, count))
        for process, _ in works.values():
            process.run("save", 0)
        texts = [json.loads((bench.work / f"{each}.json").read_text()) for each in ("ours", name)]
        same = sum(one == other for one, other in zip(*texts, strict=True)) / count
        tokens = [sum(map(len, each)) for each in texts]
        print(f"    {same:.1%} of the texts are equal; {tokens[0]:,} and {tokens[1]:,} tokens", flush=True)
    ours.close()
    for process in peers.values():
        process.close()


def show(title: str, found: Speeds) -> None:
    """Print tokens a second, and the ratio of the first of ours to every peer."""
    speeds = {
        name: [statistics.median(turn["words"] / turn[clock] for turn in turns) for clock in ("cpu", "wall")]
        for name, turns in found.items()
    }
    print(title)
    ours = [name for name in speeds if name.startswith("ours")]
    for name, (cpu, wall) in speeds.items():
        ratios = (
            f"{own}: {speeds[own][0] / cpu:.2f}x by CPU, {speeds[own][1] / wall:.2f}x by wall" for own in ours
        )
        line = "" if name in ours else "; ".join(ratios)
        print(f"  {name:<26}{cpu:>10,.0f} tokens/CPU s  {line}", flush=True)


def close(works: dict[str, tuple[Turns, str]]) -> None:
    """End all processes."""
    for process, _ in works.values():
        process.close()


ROWS_OF_TABLE = {"train": train, "rnn": rnn, "joey": joey, "ct2": ct2, "int8": int8}


def main() -> None:
    """Run the rows that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(ROWS_OF_TABLE))
    parser.add_argument("--joey", default="", help="the Python of an environment with JoeyNMT")
    parser.add_argument("--work", type=Path, required=True, help="where runs and files are kept")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--trained", type=int, default=200, help="steps of the runs that decode")
    parser.add_argument("--length", type=int, default=0, help="tokens of every text; 0: until its end")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    bench = Bench(args)
    for name in args.only.split(","):
        if name in ("train", "rnn", "joey") and not args.joey:
            print(f"{name}: give --joey PYTHON, the Python of an environment with JoeyNMT")
            continue
        ROWS_OF_TABLE[name](bench)


if __name__ == "__main__":
    main()
