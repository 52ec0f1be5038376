"""`nextword.kenlm` call by call against KenLM's C++ module: one sentence, one word at a time.

    python benchmarks/kenlm_calls.py [--data FOLDER] [--lines 200000] [--rounds 5] [--model RUN]

Trains a 5-gram on the first lines of the corpus (or takes a finished run), exports it and loads the same
ARPA file with the ``kenlm`` module. Both then score the last lines of the corpus by single calls,
alternating, and medians of CPU time are printed with their ratio (KenLM's time divided by ours: above 1 we
are faster). ``mapped``: our files are searched where they lie; ``read``: `LoadMethod.READ`, all n-grams in
hash tables, as KenLM has them. Every round of a call reads lines that no round before has read, so that
nothing remembered helps; the first round, which loads the kernels, is not counted. BaseScore is measured
twice: each word of the text after the words before it, and candidates, 20 words after every third one.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.books import folder_of, plain


def scores(model: Any, lines: list[str], module: Any) -> float:
    """Score each line by a call."""
    score = model.score
    return sum(score(line) for line in lines)


def full_scores(model: Any, lines: list[str], module: Any) -> float:
    """Take every word's log10 p, length and whether it is unknown."""
    total = 0.0
    for line in lines:
        for log10, _, _ in model.full_scores(line):
            total += log10
    return total


def base_score(model: Any, lines: list[str], module: Any) -> float:
    """Read the words of each line one by one, as in KenLM's example: two states by turns."""
    total = 0.0
    state, other = module.State(), module.State()
    step = model.BaseScore
    for line in lines:
        model.BeginSentenceWrite(state)
        for word in line.split():
            total += step(state, word, other)
            state, other = other, state
        total += step(state, "</s>", other)
    return total


def candidates(model: Any, lines: list[str], module: Any) -> float:
    """Try 20 words after every third word, each with a state of its own, as a decoder does."""
    words = [word for line in lines for word in line.split()]
    generator = random.Random(0)
    total = 0.0
    step, new = model.BaseScore, module.State
    state, other = new(), new()
    model.BeginSentenceWrite(state)
    for position, word in enumerate(words[: len(words) // 4]):
        if position % 3 == 0:
            for tried in generator.choices(words, k=20):
                total += step(state, tried, new())
        step(state, word, other)
        state, other = other, state
    return total


WORK: dict[str, Callable[[Any, list[str], Any], float]] = {
    "score": scores,
    "full_scores": full_scores,
    "BaseScore": base_score,
    "BaseScore, candidates": candidates,
}


def cpu(work: Callable[[], float]) -> tuple[float, float]:
    """Return CPU seconds and the result."""
    gc.collect()
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def compare(name: str, ours: Any, theirs: Any, lines: list[str], rounds: int) -> None:
    """Print medians of one kind of model, one row for each kind of call."""
    import kenlm

    import nextword.kenlm

    for call, work in WORK.items():
        times: tuple[list[float], list[float]] = ([], [])
        measured: dict[Any, tuple[float, float]] = {}
        for turn in range(rounds + 1):
            part = lines[turn :: rounds + 1]
            words = sum(len(line.split()) + 1 for line in part)
            both = [(ours, nextword.kenlm), (theirs, kenlm)]
            for model, module in both if turn % 2 else both[::-1]:  # who begins finds the text uncached
                measured[module] = cpu(lambda: work(model, part, module))  # noqa: B023 - called at once
            (mine, found), (other, expected) = measured[nextword.kenlm], measured[kenlm]
            assert abs(found - expected) < 1e-4 * abs(expected), (call, found, expected)
            if turn:
                times[0].append(mine / words)
                times[1].append(other / words)
        nanoseconds = [1e9 * statistics.median(each) for each in times]
        print(
            f"{name:7s} {call:24s} ours {nanoseconds[0]:7.0f} ns a word of text | kenlm "
            f"{nanoseconds[1]:7.0f} | ratio {nanoseconds[1] / nanoseconds[0]:5.2f}x",
            flush=True,
        )


def main() -> None:
    """Build or open the models and print the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--scored", type=int, default=30_000, help="lines that are scored")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", type=Path, default=None, help="a finished run instead of training one")
    parser.add_argument("--only", default="mapped,read")
    args = parser.parse_args()
    import kenlm

    import nextword.kenlm

    program = [sys.executable, "-m", "nextword"]
    with tempfile.TemporaryDirectory(prefix="nextword-bench-") as scratch:
        folder, run = Path(scratch), args.model
        whole = plain(folder_of(args.data), "train", folder)
        if run is None:
            text, run = folder / "text.txt", folder / "run"
            with open(whole, encoding="utf-8") as source, open(text, "w", encoding="utf-8") as target:
                target.writelines(line for _, line in zip(range(args.lines), source, strict=False))
            options = ["--model", "ngram", "--tokenizer", "words", "--out", str(run)]
            subprocess.run([*program, "train", str(text), *options], check=True, capture_output=True)
        arpa = folder / "model.arpa"
        subprocess.run(
            [*program, "export", str(run), "--to", "arpa", "--out", str(arpa)],
            check=True,
            capture_output=True,
        )
        theirs = kenlm.Model(str(arpa))
        lines = whole.read_text(encoding="utf-8").split("\n")[-args.scored - 1 : -1]
        for name in args.only.split(","):
            config = nextword.kenlm.Config()
            if name == "read":
                config.load_method = nextword.kenlm.LoadMethod.READ
            model = nextword.kenlm.Model(str(run), config)
            for line in lines[:: args.rounds + 1]:  # compiled code takes over after some text
                model.score(line)
            compare(name, model, theirs, lines, args.rounds)


if __name__ == "__main__":
    main()
