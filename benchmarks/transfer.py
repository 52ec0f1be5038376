"""Do modifications transfer across applications? Rows of a bench, each the start of other tasks.

python benchmarks/transfer.py --data FOLDER --bench FOLDER [--rows vanilla,swiglu,...] [--out FOLDER]
[--work FOLDER] [--seconds S] starts from the runs that `nextword compare --rows` has left (`--from`) in five
applications, then prints the table with rank correlations between applications. One JSON file per run and
application: what is there is not made again, so that it can be stopped (also by --seconds) and started again.
Beside the rows stands vanilla with the weights it began with (`untrained`): what pretraining is worth.

Applications: classification of sentiment (SST-2) and tagging (UD EWT), where the run stays as it is and its
states are the only features; summaries (AESLC), translation (Multi30k) and closed-book questions, where it
begins the decoder. Of the larger sets the first thousands of examples are used. The questions are made of
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
from nextword.comparison.bench.agreement import spearman
from nextword.models.modifications import TABLE

# Column -> (the figure that decides, whether more is better). At this size written text is mostly wrong, so
# that the loss of the given target tells more than BLEU or ROUGE, and the order of sentences by probability
# more than the share of right labels; these are in the files, too.
DECIDES = {
    "pretraining": ("bits_per_byte", False), "classification": ("roc_area", True),
    "tagging": ("accuracy", True), "summaries": ("nll", False), "questions": ("nll", False),
    "translation": ("nll", False),
}  # fmt: skip
TEXTS = 100  # of a test set that are written; greedily
FROZEN = {"model.embedding": 0, "model.spelling": "none", "model.hidden": 32, "train.threads": 1}
BEGUN = {
    "train.batch": 16, "train.threads": 1, "train.valid_tokens": 2000, "data.longest": 60,
    "data.too_long": "cut", "model.encoder_layers": 2,
}  # fmt: skip


UNTRAINED = "untrained"
SHUFFLES = 10_000  # to tell how far a rank correlation is from 0 by chance

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
    data, out = args.data, args.work
    out.mkdir(parents=True, exist_ok=True)
    asked = questions(lines(data / "wikitext2/train.raw"))
    mails = lines(data / "aeslc/train.tsv.gz", 6000)
    flickr, tested = pairs(data, "train", 8000), pairs(data, "test_2016_flickr", TEXTS)
    half = asked[1::2][:TEXTS]
    return {
        "classification": (
            write(out / "sst.tsv", lines(data / "sst2/train.tsv")),
            write(out / "sst-test.tsv", lines(data / "sst2/test.tsv")),
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


def trained(args):
    """Return the figures of the runs of a bench by their labels: those asked for, all seeds; else all."""
    made = {path.stem: json.loads(path.read_text()) for path in sorted((args.bench / "rows").glob("*.json"))}
    names = [f"narang-{each.name}" for each in TABLE if not args.rows or each.name in args.rows]
    labels = [label for name in names for label in made if label.partition("-seed")[0] == name]
    return {label: made[label] for label in labels}


def untrained(args):
    """Return a run of vanilla that has learned nothing, with the tokenizer of the bench."""
    folder = args.work / UNTRAINED
    if not folder.is_dir():
        (tokenizer,) = (args.bench / "tokenizers").glob("*.json")
        sets = {"train.steps": 1, "train.rate": 1e-12, "train.threads": 1, "data.hold_out": 0}
        text = args.data / "wikitext2/train.raw"
        nextword.train(text, model="narang/vanilla", tokenizer=tokenizer, set=sets, seed=0, out=folder)
    return folder


def most_frequent(files):
    """Return what always the most frequent label reaches: no order of texts, and a share of words."""
    columns = [line.split("\t") for line in lines(Path(files["tagging"][1])) if line[:1].isdigit()]
    tags = [column[3] for column in columns if column[0].isdigit()]
    return {
        "classification": 0.5,
        "tagging": max(map(tags.count, set(tags))) / len(tags),
    }


def applied(args, label, name, files):
    """Start from a run in an application; return its figures."""
    source = untrained(args) if label == UNTRAINED else args.bench / "runs" / label
    if name in ("classification", "tagging"):
        task = "classify" if name == "classification" else "tag"
        sets = FROZEN | {"train.steps": args.frozen_steps}
        run = nextword.train(files[0], task=task, model="window", source=source, set=sets)
        found = run.evaluate(files[1])
    else:
        measure = {"summaries": "summary", "questions": "answers"}.get(name, "translation")
        sets = BEGUN | {"train.steps": args.steps, "data.measure": measure}
        run = nextword.train(files[0], task="translate", source=source, set=sets)
        found = run.evaluate(files[1], set={"decode.decode": "greedy"})
    numbers = {key: value for key, value in found.to_json().items() if isinstance(value, int | float)}
    return {key: value for key, value in numbers.items() if key != "seconds"}


def make(args, runs, files):
    """Make every file that is missing, until the seconds are over."""
    began = time.perf_counter()
    args.out.mkdir(parents=True, exist_ok=True)
    for label, name in ((label, name) for label in runs for name in files):
        path = args.out / f"{label}.{name}.json"
        if path.exists() or not (label == UNTRAINED or (args.bench / "runs" / label).is_dir()):
            continue
        if args.seconds and time.perf_counter() - began > args.seconds:
            print("the seconds are over; the same command goes on", file=sys.stderr)
            return
        started = time.process_time()
        try:
            found = applied(args, label, name, files[name])
        except nextword.NextwordError as error:
            found = {"refused": str(error)}
        about = {
            "run": label, "application": name,
            "steps": args.frozen_steps if name in ("classification", "tagging") else args.steps,
            "cpu_seconds": round(time.process_time() - started, 1), "figures": found,
        }  # fmt: skip
        path.write_text(json.dumps(about, indent=1) + "\n")
        print(label, name, found, file=sys.stderr, flush=True)


def collect(args, runs):
    """Return by run the deciding figure of every column; None where an application refused it."""
    found = {}
    for label, row in runs.items():
        files = {name: args.out / f"{label}.{name}.json" for name in list(DECIDES)[1:]}
        if all(path.exists() for path in files.values()):
            figures = {name: json.loads(path.read_text())["figures"] for name, path in files.items()}
            figures["pretraining"] = row
            found[label] = {name: figures[name].get(figure) for name, (figure, _) in DECIDES.items()}
    return found


def table(found, frequent):
    """Print figures as Markdown, each the mean over pretrainings of a row, and how far those are apart; then
    Spearman's rank correlations of columns."""
    names, shown = list(DECIDES), {f"narang-{each.name}": each.row for each in TABLE}
    shown[UNTRAINED] = "*Vanilla, not trained*"
    heading = " | ".join(f"{name} ({DECIDES[name][0].replace('_', ' ')})" for name in names)
    print(f"| row | runs | {heading} |\n|---|---:|" + "---:|" * len(names))
    by_row: dict[str, list[dict[str, float | None]]] = {}
    for label, figures in found.items():
        by_row.setdefault(label.partition("-seed")[0], []).append(figures)
    means = {row: {name: mean(runs, name) for name in names} for row, runs in by_row.items()}
    for row, figures in means.items():
        print(_line(f"{shown[row]} | {len(by_row[row])}", figures))
    print(_line("*the most frequent label* | ", frequent))
    able = {row: figures for row, figures in means.items() if None not in figures.values()}
    if len(able) < 3:
        return
    values = {name: np.array([row[name] for row in able.values()]) for name in names}
    print(_line("*standard deviation over rows* | ", {name: values[name].std(ddof=1) for name in names}))
    several = [by_row[row] for row in able if len(by_row[row]) > 1]
    if several:
        within = {name: pooled([[run[name] for run in runs] for runs in several]) for name in names}
        print(_line("*standard deviation between pretrainings of a row* | ", within))
    print(
        f"\nSpearman's rank correlation over {len(able)} rows (unrelated columns stay below "
        f"{by_chance(len(able)):.2f} in 95 % of cases):\n\n| | " + " | ".join(names[1:]) + " |"
    )
    print("|---|" + "---:|" * len(names[1:]))
    better = {name: values[name] * (1 if is_more else -1) for name, (_, is_more) in DECIDES.items()}
    above = {(one, other): spearman(better[one], better[other]) for one, other in combinations(names, 2)}
    for name in names[:-1]:
        cells = [f"{above[name, other]:+.2f}" if (name, other) in above else "" for other in names[1:]]
        print(f"| {name} | " + " | ".join(cells) + " |")


def mean(runs, name):
    """Return the mean of a figure over the runs of a row; None where an application refused one."""
    found = [run[name] for run in runs]
    return None if None in found else float(np.mean(found))


def pooled(groups):
    """Return the standard deviation within groups."""
    left = sum(len(group) - 1 for group in groups)
    return float(np.sqrt(sum(np.var(group) * len(group) for group in groups) / left))


def _line(title, figures):
    return f"| {title} | " + " | ".join(_shown(figures.get(name)) for name in DECIDES) + " |"


def by_chance(rows):
    """Return what the rank correlation of unrelated columns stays below in 95 % of cases, either way."""
    rng, order = np.random.default_rng(0), np.arange(rows)
    found = [abs(spearman(order, rng.permutation(rows))) for _ in range(SHUFFLES)]
    return float(np.quantile(found, 0.95))


def _shown(value):
    return "-" if value is None else f"{value:.4f}"


def main():
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--bench", type=Path, required=True, help="the folder of nextword compare --rows")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=())
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/transfer")
    parser.add_argument("--work", type=Path, default=Path("transfer-work"), help="for the sets that are made")
    parser.add_argument("--steps", type=int, default=100, help="of summaries, questions and translation")
    parser.add_argument("--frozen-steps", type=int, default=1000, help="of classification and tagging")
    parser.add_argument("--seconds", type=float, default=0.0, help="begin nothing new after so many")
    args = parser.parse_args()
    files, runs = prepare(args), {UNTRAINED: {}} | trained(args)
    make(args, runs, files)
    table(collect(args, runs), most_frequent(files))


if __name__ == "__main__":
    main()
