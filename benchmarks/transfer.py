"""Do modifications transfer across applications? Rows of the table, pretrained on text, then on other tasks.

python benchmarks/transfer.py --data FOLDER [--rows vanilla,swiglu,...] [--out FOLDER] [--runs FOLDER]
[--seconds 690] pretrains each row (`--model narang/ROW`) on WikiText-2 and starts from it (`--from`) in five
applications, then prints the table with rank correlations between applications. One JSON file per row and
application: what is there is not made again, so that it can be stopped (also by --seconds) and started again.

Applications: classification of sentiment (SST-2) and tagging (UD EWT), where the run stays as it is and its
states are the only features; summaries (AESLC), translation (Multi30k) and closed-book questions, where it
begins the decoder. Of every set the first thousands of examples are used. The questions are made of
WikiText-2: what is TITLE? - the words after "is a" in the first sentence of its article. All articles were
pretrained on; questions of one half are learned from, those of the other half are asked, so that an answer
can come only from what pretraining left in the weights.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np

import nextword
from nextword.models.modifications import TABLE

ROWS = (
    "vanilla", "swiglu", "rms-norm", "rezero-layernorm", "6-layers", "block-sharing", "untied",
    "mixture-of-softmaxes", "dynamic-convolution", "synthesizer-random-plus", "switch-transformer", "gelu",
    "geglu", "fixup", "24-layers", "factorized-shared-embeddings", "transparent-attention",
    "lightweight-convolution", "synthesizer-dense", "mixture-of-experts", "universal-transformer",
    "weighted-transformer", "product-key-memory", "evolved-transformer",
)  # fmt: skip
# Column -> (the figure that decides, whether more is better). At this size written text is mostly wrong, so
# that the loss of the given target tells more than BLEU or ROUGE, which are in the files, too.
DECIDES = {
    "pretraining": ("bits_per_byte", False), "classification": ("accuracy", True),
    "tagging": ("accuracy", True), "summaries": ("nll", False), "questions": ("nll", False),
    "translation": ("nll", False),
}  # fmt: skip
TEXTS = 100  # of a test set that are written; greedily
FROZEN = {"model.embedding": 0, "model.spelling": "none", "model.hidden": 32, "train.threads": 1}
BEGUN = {
    "train.batch": 16, "train.threads": 1, "train.valid_tokens": 2000, "data.longest": 60,
    "data.too_long": "cut", "model.encoder_layers": 2,
}  # fmt: skip


IS_A = re.compile(r" (?:is|was|were|are) (?:a|an|the) ([^.,;()]{3,60}?) (?:[.,;(]|that|which|who)")


def lines(path, most=None):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for _, line in zip(range(most or 10**9), file, strict=False)]


def write(path, rows):
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(path)


def questions(text):
    """Return "what is TITLE ?" TAB answer, one for each article whose first sentence says what it is."""
    found, title = [], None
    for line in text:
        if head := re.fullmatch(r" ?= ([^=]+) = ?", line):
            title = head[1]
        elif title is not None and line.strip():
            if said := IS_A.search(line):
                found.append(f"what is {title} ?\t{said[1]}")
            title = None
    return found


def prepare(args):
    """Write the sets that are not files already; return the files of each application."""
    data, out = args.data, args.runs
    out.mkdir(parents=True, exist_ok=True)
    asked = questions(lines(data / "wikitext2/train.raw"))
    mails = lines(data / "aeslc/train.tsv.gz", 6000)
    flickr, tested = pairs(data, "train", 8000), pairs(data, "test_2016_flickr", TEXTS)
    half = asked[1::2][:TEXTS]
    return {
        "classification": (
            write(out / "sst.tsv", lines(data / "sst2/train.tsv", 3000)),
            write(out / "sst-test.tsv", lines(data / "sst2/test.tsv", 600)),
        ),
        "tagging": (
            write(out / "ewt.conllu", sentences(data, "train", 1500)),
            write(out / "ewt-test.conllu", sentences(data, "test", 300)),
        ),
        "summaries": (
            write(out / "mails.tsv", map(short, mails)),
            write(out / "mails-test.tsv", map(short, lines(data / "aeslc/test.tsv", TEXTS))),
        ),
        "questions": (write(out / "asked.tsv", asked[::2]), write(out / "asked-test.tsv", half)),
        "translation": (write(out / "flickr.tsv", flickr), write(out / "flickr-test.tsv", tested)),
    }  # fmt: skip


def pairs(data, part, most):
    both = (lines(data / f"multi30k-en-de/{part}.{side}", most) for side in ("en", "de"))
    return [f"{source}\t{target}" for source, target in zip(*both, strict=True)]


def sentences(data, part, most):
    """Return the lines of the first sentences of a treebank."""
    found = lines(data / f"ud-english-ewt/en_ewt-ud-{part}.conllu")
    ends = [at for at, line in enumerate(found) if not line]
    return found[: ends[most - 1] + 1]


def short(mail):
    """Return the first 40 words of a mail and its subject: the budget is small."""
    body, _, subject = mail.partition("\t")
    return f"{' '.join(body.split()[:40])}\t{subject}"


def pretrained(args, row):
    """Train a row on WikiText-2; return the folder of its run, and its figures."""
    run = args.runs / row
    sets = {
        "train.steps": args.pretrain, "train.batch": 8, "text.size": 4000, "train.threads": 1,
        "train.valid_tokens": 4000, "train.save_every": 10**6,
    }  # fmt: skip
    tokenizer = args.runs / "vanilla/tokenizer.json"
    made = nextword.train(
        args.data / "wikitext2/train.raw", model=f"narang/{row}", set=sets, seed=args.seed, out=run,
        overwrite=True, valid=args.data / "wikitext2/valid.raw",
        **({"tokenizer": tokenizer} if tokenizer.exists() else {}),
    )  # fmt: skip
    text = "\n".join(lines(args.data / "wikitext2/test.raw", 300))
    (args.runs / "test.txt").write_text(text, encoding="utf-8")
    found = made.evaluate(args.runs / "test.txt").to_json()
    about = {"parameters": made.parameters, "tokens": args.pretrain * 8 * 128}
    return {key: found[key] for key in ("bits_per_byte", "nll")} | about


def applied(args, row, name, files):
    """Start from a row's run in an application; return its figures."""
    source = args.runs / row
    if name in ("classification", "tagging"):
        task = "classify" if name == "classification" else "tag"
        sets = FROZEN | {"train.steps": args.steps}
        run = nextword.train(files[0], task=task, model="window", source=source, set=sets, seed=args.seed)
        found = run.evaluate(files[1])
    else:
        measure = {"summaries": "summary", "questions": "answers"}.get(name, "translation")
        sets = BEGUN | {"train.steps": args.steps, "data.measure": measure}
        run = nextword.train(files[0], task="translate", source=source, set=sets, seed=args.seed)
        found = run.evaluate(files[1], set={"decode.decode": "greedy"})
    numbers = {key: value for key, value in found.to_json().items() if isinstance(value, int | float)}
    return {key: value for key, value in numbers.items() if key != "seconds"}


def make(args):
    """Make every file that is missing, until the seconds are over."""
    began, files = time.perf_counter(), prepare(args)
    args.out.mkdir(parents=True, exist_ok=True)
    for row in args.rows:
        for name in DECIDES:
            path = args.out / f"{row}.{name}.json"
            if path.exists():
                continue
            if args.seconds and time.perf_counter() - began > args.seconds:
                print("the seconds are over; the same command goes on", file=sys.stderr)
                return
            started = time.process_time()
            try:
                if name != "pretraining" and not (args.runs / row / "config.toml").exists():
                    pretrained(args, row)
                is_first = name == "pretraining"
                found = pretrained(args, row) if is_first else applied(args, row, name, files[name])
            except nextword.NextwordError as error:
                found = {"refused": str(error)}
            about = {
                "row": row, "application": name, "seed": args.seed, "pretrain_steps": args.pretrain,
                "steps": args.steps, "cpu_seconds": round(time.process_time() - started, 1), "figures": found,
            }  # fmt: skip
            path.write_text(json.dumps(about, indent=1) + "\n")
            print(row, name, found, file=sys.stderr, flush=True)


def table(args):
    """Print what is there as Markdown: figures, then Spearman's rank correlations between applications."""
    names, found = list(DECIDES), {}
    for row in args.rows:
        files = {name: args.out / f"{row}.{name}.json" for name in names}
        if all(path.exists() for path in files.values()):
            found[row] = {name: json.loads(path.read_text())["figures"] for name, path in files.items()}
    shown = {each.name: each.row for each in TABLE}
    print("| row | " + " | ".join(f"{name} ({DECIDES[name][0].replace('_', ' ')})" for name in names) + " |")
    print("|---|" + "---:|" * len(names))
    for row, figures in found.items():
        print(f"| {shown[row]} | " + " | ".join(_shown(figures[name], name) for name in names) + " |")
    whole = [row for row in found if all(DECIDES[name][0] in found[row][name] for name in names)]
    if len(whole) < 3:
        return
    values = {}
    for name, (figure, higher) in DECIDES.items():
        values[name] = np.array([found[row][name][figure] for row in whole]) * (1 if higher else -1)
    print(f"\nSpearman's rank correlation over {len(whole)} rows:\n\n| | " + " | ".join(names[1:]) + " |")
    print("|---|" + "---:|" * len(names[1:]))
    above = {(one, other): spearman(values[one], values[other]) for one, other in combinations(names, 2)}
    for name in names[:-1]:
        cells = [f"{above[name, other]:+.2f}" if (name, other) in above else "" for other in names[1:]]
        print(f"| {name} | " + " | ".join(cells) + " |")


def spearman(one, other):
    """Return the correlation of ranks; equal values share their mean rank."""
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def _ranks(values):
    return np.array([(values < value).sum() + ((values == value).sum() - 1) / 2 for value in values])


def _shown(figures, name):
    value = figures.get(DECIDES[name][0])
    return "-" if value is None else f"{value:.4f}"


def main():
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=lambda text: tuple(text.split(",")), default=ROWS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/transfer")
    parser.add_argument("--runs", type=Path, default=Path("transfer-runs"))
    parser.add_argument("--pretrain", type=int, default=250, help="steps of 8 rows of 128 tokens")
    parser.add_argument("--steps", type=int, default=120, help="of each application")
    parser.add_argument("--seconds", type=float, default=0.0, help="begin nothing new after so many")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    make(args)
    table(args)


if __name__ == "__main__":
    main()
