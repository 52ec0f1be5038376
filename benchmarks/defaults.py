"""Defaults before and after: what a change of a default costs or gains, with several seeds on four texts.

    python benchmarks/defaults.py [--only head,frequencies,pattern,ngram,speed] [--seeds 0,1,2] [--steps 400]
                                  [--seconds 30] [--size 2x64] [--results defaults.jsonl]

``head``: a Transformer with an output bias whose loss leaves START and UNKNOWN out (before), and without both
(after), as the default begins: with the tokens' frequencies in a coordinate of the embeddings.
``frequencies``: without bias and mask, random vectors (before) and the default (after). ``pattern``: BPE
split by GPT-2's pattern (before) and by Qwen2's (after), the same Transformer; ``ngram``: the same two under
a 5-gram. A cell is a run of its own: bits per byte of a test text, CPU seconds of training. Differences are
after - before, seed by seed, so negative is better. ``speed``: tokenizing alone. With --seconds every cell
gets this many CPU seconds, tokenizer included, instead of a number of steps: two short trainings of each arm,
taken in turns, say how many steps these are. --size is layers x width. Cells that are in the results file are
not run again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from support import texts

TEXTS = ("tinyshakespeare", "sotu", "wikitext2", "code")
TRAIN, TEST = 1_000_000, 50_000  # bytes
FIXED = {"model.context": 64, "train.threads": 1}
SIZE = "2x64"  # layers x width
OLD_HEAD = {"model.head_bias": True, "model.mask_impossible": True}
NO_BIAS = {"model.head_bias": False, "model.mask_impossible": False, "model.frequencies": False}
NEW_HEAD = NO_BIAS | {"model.frequencies": True}
GPT2, QWEN2 = {"text.pattern": "gpt2"}, {"text.pattern": "qwen2"}
ARMS: dict[str, dict[str, dict[str, Any]]] = {
    "head": {"before": OLD_HEAD | QWEN2, "after": NEW_HEAD | QWEN2},
    "frequencies": {"before": NO_BIAS | QWEN2, "after": NEW_HEAD | QWEN2},
    "pattern": {"before": NEW_HEAD | GPT2, "after": NEW_HEAD | QWEN2},
    "ngram": {"before": GPT2, "after": QWEN2},
}
PILOTS = (20, 120)  # steps
Row = dict[str, Any]
TIMED: dict[str, tuple[float, float]] = {}  # of an arm: CPU seconds without any step, and of a step


def cut(name: str, work: Path) -> tuple[Path, Path]:
    """Write training and test text of a corpus; of several files, the same share of each."""
    if name == "wikitext2":
        files = [texts.corpus_folder(name) / "train.raw"]
    else:
        files = [Path(file) for file in texts.corpus_files(name)]
    share = len(files) if name == "code" else 1
    data = (
        [file.read_bytes() for file in files] if name == "code" else [b"".join(map(Path.read_bytes, files))]
    )
    train, test = work / f"{name}.train.txt", work / f"{name}.test.txt"
    first, last = TRAIN // share, (TRAIN + TEST) // share
    for path, part in ((train, slice(0, first)), (test, slice(first, last))):
        path.write_bytes(b"".join(each[part] for each in data).decode("utf-8", "ignore").encode())
    return train, test


def run_cell(row: Row, train: Path, test: Path) -> Row:
    """Train and measure one cell."""
    if row["seconds"] and row["what"] != "ngram":
        row = row | {"made": steps_within(row, train)}
    run, seconds = train_cell(row, train)
    report = run.evaluate(str(test))
    return row | {"bits_per_byte": report.bits_per_byte, "tokens": report.tokens, "cpu": seconds}


def train_cell(row: Row, train: Path) -> tuple[Any, float]:
    """Return the run and its CPU seconds."""
    import nextword

    sets = dict(ARMS[row["what"]][row["arm"]])
    is_ngram = row["what"] == "ngram"
    if not is_ngram:
        layers, width = map(int, row["size"].split("x"))
        sets |= FIXED | {"model.layers": layers, "model.hidden": width}
        sets["train.steps"] = row.get("made", row["steps"])
    model = "ngram" if is_ngram else "transformer"
    began = time.process_time()
    run = nextword.train(str(train), model=model, tokenizer="bpe", seed=row["seed"], set=sets)
    return run, time.process_time() - began


def steps_within(row: Row, train: Path) -> int:
    """Return how many steps of an arm take the row's CPU seconds: both arms are timed, once a process."""
    arms = {arm: json.dumps(ARMS[row["what"]][arm], sort_keys=True) for arm in ("before", "after")}
    if arms[row["arm"]] not in TIMED:
        pilot = row | {"seed": 0}
        train_cell(pilot | {"made": PILOTS[0]}, train)  # loads and compiles
        took: dict[str, list[list[float]]] = {arm: [] for arm in arms}
        for _ in range(3):
            for arm, each in took.items():
                each.append([train_cell(pilot | {"arm": arm, "made": n}, train)[1] for n in PILOTS])
        for arm, each in took.items():
            few, many = map(statistics.median, zip(*each, strict=True))
            step = (many - few) / (PILOTS[1] - PILOTS[0])
            TIMED[arms[arm]] = few - PILOTS[0] * step, step
    rest, step = TIMED[arms[row["arm"]]]
    return max(1, round((row["seconds"] - rest) / step))


def same_cell(row: Row, known: Row) -> bool:
    """Tell whether a cell that is there is the same run: arms of two questions may be one."""
    arms = [ARMS[each["what"]][each["arm"]] for each in (row, known)]
    same = all(row[name] == known.get(name, 0) for name in ("steps", "seconds", "text", "seed"))
    return same and row["size"] == known.get("size", SIZE) and arms[0] == arms[1]


def speed(train: Path, rounds: int = 5) -> dict[str, float]:
    """Return bytes a CPU second of each pattern, taken in turns."""
    from nextword.core.contracts import Block
    from nextword.text.settings import TextSettings
    from nextword.text.subwords import SubwordTokenizer

    blocks = [Block(train.read_bytes(), True)]
    made = {
        name: SubwordTokenizer.fit(blocks, TextSettings(tokenizer="bpe", pattern=name))
        for name in ("gpt2", "qwen2")
    }
    found: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(rounds):
        for name, tokenizer in made.items():
            began = time.process_time()
            for _ in tokenizer.encode_blocks(blocks):
                pass
            found[name].append(len(blocks[0].data) / (time.process_time() - began))
    return {name: statistics.median(each) for name, each in found.items()}


def show(rows: list[Row]) -> None:
    """Print for each text and length of training the means, the differences of the seeds and the CPU time."""
    cells = sorted({(row["what"], length(row), row["text"]) for row in rows}, key=str)
    print(f"{'':<32}{'before':>9}{'after':>9}   after - before, seed by seed   CPU after / before")
    for what, long, text in cells:
        arms = {
            arm: {row["seed"]: row for row in rows
                  if (row["what"], length(row), row["text"], row["arm"]) == (what, long, text, arm)}
            for arm in ("before", "after")
        }  # fmt: skip
        seeds = sorted(arms["before"].keys() & arms["after"].keys())
        if not seeds:
            continue
        bits = {arm: [arms[arm][seed]["bits_per_byte"] for seed in seeds] for arm in arms}
        cpu = {arm: sum(arms[arm][seed]["cpu"] for seed in seeds) for arm in arms}
        each = " ".join(f"{b - a:+.4f}" for a, b in zip(bits["before"], bits["after"], strict=True))
        label = f"{what} {long}{text}"
        means = "".join(f"{statistics.mean(bits[arm]):>9.4f}" for arm in ("before", "after"))
        print(f"{label:<32}{means}   {each:<29}   {cpu['after'] / cpu['before']:.2f}")


def length(row: Row) -> str:
    """Return how long a cell is trained, as the table shows it."""
    size = "" if row.get("size", SIZE) == SIZE else f"{row['size']} "
    if row.get("seconds"):
        return f"{size}{row['seconds']:g} CPU s "
    return f"{size}{row['steps']} steps " if row["steps"] else ""


def main() -> None:
    """Run what is asked for and not there, then show the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="head,frequencies,pattern,ngram,speed")
    parser.add_argument("--texts", default=",".join(TEXTS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", default="400")
    parser.add_argument("--seconds", type=float, default=0.0, help="CPU seconds of a cell, instead of steps")
    parser.add_argument("--size", default=SIZE, help="layers x width")
    parser.add_argument("--results", type=Path, default=Path("defaults.jsonl"))
    args = parser.parse_args()
    lines = args.results.read_text().split("\n") if args.results.exists() else []
    rows = [json.loads(line) for line in lines if line]
    wanted = args.only.split(",")
    with tempfile.TemporaryDirectory(prefix="defaults-") as folder:
        files = {name: cut(name, Path(folder)) for name in args.texts.split(",")}
        for row in plan([each for each in wanted if each != "speed"], args):
            known = next((each for each in rows if same_cell(row, each)), None)
            if known is not None and known["what"] == row["what"]:
                continue
            rows.append(run_cell(row, *files[row["text"]]) if known is None else known | row)
            print(json.dumps(rows[-1]), flush=True)
            with args.results.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
        show(rows)
        for text in files if "speed" in wanted else ():
            found = speed(files[text][0])
            ratio = found["qwen2"] / found["gpt2"]
            print(f"tokenizing {text}: " + ", ".join(f"{n} {v / 1e6:.1f} MB/s" for n, v in found.items())
                  + f" ({ratio:.2f}x)")  # fmt: skip


def plan(wanted: list[str], args: argparse.Namespace) -> list[Row]:
    """Return the cells in an order that gives every text its first seed early."""
    return [
        {
            "what": what,
            "steps": steps,
            "seconds": args.seconds,
            "text": text,
            "arm": arm,
            "seed": seed,
            "size": args.size,
        }
        for what in wanted
        for steps in ([0] if what == "ngram" or args.seconds else map(int, args.steps.split(",")))
        for seed in ([0] if what == "ngram" else map(int, args.seeds.split(",")))
        for text in args.texts.split(",")
        for arm in ARMS[what]
    ]


if __name__ == "__main__":
    main()
