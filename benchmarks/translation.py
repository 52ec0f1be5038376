"""Multi30k by what the decoder knows of its source, and by the kind of attention, after equal CPU minutes.

python benchmarks/translation.py --data FOLDER [--minutes 5] [--only init,every-step,attention,transformer]
[--pairs de-en,en-de] [--seeds 1] prints a table: sacrebleu of test 2016 on raw text by a beam of 5. FOLDER
holds train.de, train.en and so on. `support/cpu_clock.py` counts the minutes: a busy machine trains as
much as an idle one.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path

from support.command import nextword

from nextword.data.recipes.recipe import write_pairs

LSTM = ("--model", "lstm")
ROWS = {
    "init": (*LSTM, "--set", "model.context=init"),
    "every-step": (*LSTM, "--set", "model.context=every-step"),
    "attention": LSTM,
    "dot": (*LSTM, "--set", "model.attention=dot"),
    "bilinear": (*LSTM, "--set", "model.attention=bilinear"),
    "mlp": (*LSTM, "--set", "model.attention=mlp"),
    "transformer": (),
}
PARTS = {"train": "train", "val": "val", "test": "test_2016_flickr"}
COLUMNS = ("pair", "row", "size", "steps", "BLEU", "chrF", "perplexity", "CPU minutes")
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # Student's t of so many seeds


def table(args, direction, part):
    """Write the pairs of a part of the corpus; return the file."""
    sides = [
        (args.data / f"{PARTS[part]}.{side}").read_text(encoding="utf-8").splitlines()
        for side in direction.split("-")
    ]
    file = args.out / f"{part}.{direction}.tsv"
    write_pairs(file, zip(*sides, strict=True))
    return file


def trained(args, name, direction, seed):
    """Train a row, and return its scores on the test set, its plan and its CPU seconds."""
    learned, valid, test = (table(args, direction, part) for part in PARTS)
    run = args.out / "runs" / f"{direction}-{name}-{seed}"
    what = ("--task", "translate", "--valid", valid, "--minutes", args.minutes, "--seed", seed)
    out = ("--out", run, "--overwrite")
    _, seconds = nextword("train", learned, *what, *ROWS[name], *out, module="support.cpu_clock")
    found = json.loads(nextword("eval", run, test, "--json")[0])
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    plan = next((row["plan"] for row in rows if "plan" in row), {})
    steps = max((row["step"] for row in rows if "step" in row), default=0)
    return found | {"plan": plan, "steps": steps, "cpu": seconds}


def interval(values):
    """Return the mean, and with several seeds the 95 % interval by Student's t."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:.1f}"
    half = T_95[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:.1f} ± {half:.1f} ({', '.join(f'{value:.1f}' for value in values)})"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("multi30k"))
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--pairs", default="de-en")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="init,every-step,attention,transformer")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"| {' | '.join(COLUMNS)} |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    for direction in args.pairs.split(","):
        for name in args.only.split(","):
            every = [trained(args, name, direction, seed) for seed in range(args.seeds)]
            first = every[0]["plan"]
            cells = [
                direction, name, f"{first.get('about', '')}, {first.get('parameters', 0) / 1e6:.2f} M",
                f"{statistics.fmean(each['steps'] for each in every):,.0f}",
                interval([each["bleu"] for each in every]), interval([each["chrf"] for each in every]),
                f"{statistics.fmean(each['perplexity'] for each in every):.2f}",
                f"{statistics.fmean(each['cpu'] for each in every) / 60:.1f}",
            ]  # fmt: skip
            print("| " + " | ".join(cells) + " |", flush=True)
    print(f"signature {every[0]['signature']}")


if __name__ == "__main__":
    main()
