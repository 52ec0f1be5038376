"""Rows of `benchmarks/tasks.py`: taggers of the same shapes, ours and Flair's, word by word a CPU second."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from peers.turns import Turns
from support import texts
from support.worker import SAME_ALLOCATOR

SHAPES = "BiLSTM-CRF 1x256, words 100, characters 25+25"


def run(args: argparse.Namespace) -> None:
    """Train and predict in turns, on the parts of speech of UD English EWT."""
    if not args.flair:
        print("tagging: give --flair PYTHON, the Python of an environment with Flair (transformers<5)")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sentences.json"
        path.write_text(json.dumps(_sentences(args.sentences)))
        one = {"OMP_NUM_THREADS": str(args.threads)}
        workers = {
            "nextword": Turns(sys.executable, "peers.our_tagger", str(path), environment=one),
            "Flair": Turns(args.flair, "peers.flair_tagger", str(path), environment=one),
            "Flair, same allocator": Turns(
                args.flair, "peers.flair_tagger", str(path), environment=one | SAME_ALLOCATOR
            ),
        }
        for verb, number in (("train", args.steps), ("predict", args.predicted)):
            for worker in workers.values():
                worker.run(verb, max(1, number // 4))
            found = {name: [] for name in workers}
            for _ in range(args.rounds):
                for name, worker in workers.items():
                    found[name].append(worker.run(verb, number))
            _show(verb, found)
        for worker in workers.values():
            worker.close()


def _sentences(most: int) -> list[tuple[list[str], list[str]]]:
    from nextword.data.conll import TagDataSettings, TaggedText

    path = texts.corpus_folder("ud-english-ewt") / "en_ewt-ud-train.conllu"
    every = TaggedText([str(path)], TagDataSettings()).read()
    return [(list(each.words), list(each.tags)) for each in every[:most]]


def _show(verb: str, found: dict[str, list[dict[str, float]]]) -> None:
    speeds = {
        name: [statistics.median(turn["words"] / turn[clock] for turn in turns) for clock in ("cpu", "wall")]
        for name, turns in found.items()
    }
    print(f"{SHAPES}: {verb}")
    for name, (cpu, wall) in speeds.items():
        ratio = f"  {speeds['nextword'][0] / cpu:5.2f}x by CPU  {speeds['nextword'][1] / wall:5.2f}x by wall"
        print(f"  {name:<24}{cpu:>10,.0f} words/CPU s{'' if name == 'nextword' else ratio}", flush=True)
