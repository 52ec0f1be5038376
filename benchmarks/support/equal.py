"""Rows of `benchmarks/tasks.py`: quality after equal minutes on one thread, of ours and of the peers.

Every program gets --minutes of CPU time after its imports, on one processor: for ours the clock is made to be
CPU time. Who is done earlier stops earlier; the CPU seconds that were used are in the table. A cell is a line
of the file --results; cells that are there are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from support import texts

Example = tuple[Any, Any]  # text and label, or words and tags
Parts = dict[str, list[Example]]
COLUMNS = {
    "SST-2, accuracy": ("SST-2", "accuracy"), "SMS, accuracy": ("SMS", "accuracy"),
    "SMS, F1 of spam": ("SMS", "spam_f1"), "WNUT-17, span F1": ("WNUT-17", "span_f1"),
    "UD EWT, accuracy": ("EWT", "accuracy"), "Reuters, micro F1": ("Reuters", "micro_f1"),
}  # fmt: skip
PROGRAMS = {
    "nextword, auto": "auto", "nextword, lstm": "lstm", "Flair": "flair", "fastText": "fasttext",
    "tf-idf + logistic regression": "sklearn",
}  # fmt: skip


def run(args: argparse.Namespace) -> None:
    """Run the cells that are missing and print the table."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    path = Path(args.results)
    done = [json.loads(line) for line in path.read_text().split("\n") if line] if path.exists() else []
    cells = {(each["program"], each["data"]): each for each in done}
    for data, (task, parts) in _data().items():
        for program, kind in PROGRAMS.items():
            chosen = kind in args.programs.split(",") and data in args.data.split(",")
            if not chosen or (program, data) in cells:
                continue
            if task == "tag" and kind in ("fasttext", "sklearn", "lstm"):
                continue  # no taggers; without a name a tagger of ours is the LSTM
            if not {"flair": args.flair, "fasttext": args.fasttext}.get(kind, "here"):
                continue
            cells[program, data] = {"program": program, "data": data} | _cell(kind, task, parts, args)
            with path.open("a") as file:
                file.write(json.dumps(cells[program, data]) + "\n")
    _show(cells, args.minutes)


def _data() -> dict[str, tuple[str, Parts]]:
    names = ("sst2", "sms-spam", "wnut17", "ud-english-ewt", "reuters")
    sst, sms, wnut, ewt, reuters = (texts.corpus_folder(name) for name in names)
    rows = [tuple(reversed(line.split("\t", 1))) for line in _lines(sms / "sms.tsv")]
    rest = [row for at, row in enumerate(rows, 1) if at % 5]
    return {
        "SST-2": ("classify", {name: [tuple(line.rsplit("\t", 1)) for line in _lines(sst / f"{name}.tsv")]
                               for name in ("train", "dev", "test")}),
        "SMS": ("classify", {
            "train": [row for at, row in enumerate(rest) if at % 8], "dev": rest[::8],
            "test": [row for at, row in enumerate(rows, 1) if not at % 5]}),
        "WNUT-17": ("tag", {name: _tagged(wnut / f"{name}.conll") for name in ("train", "dev", "test")}),
        "EWT": ("tag", {name: _parts_of_speech(ewt / f"en_ewt-ud-{name}.conllu")
                        for name in ("train", "dev", "test")}),
        "Reuters": ("classify", _topics(reuters)),
    }  # fmt: skip


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _tagged(path: Path) -> list[Example]:
    """Read words and tags; a line without either is the end of a sentence."""
    found: list[Example] = [([], [])]
    for line in _lines(path):
        if not line.strip():
            found.append(([], []))
            continue
        for part, value in zip(found[-1], line.split("\t"), strict=True):
            part.append(value)
    return [each for each in found if each[0]]


def _parts_of_speech(path: Path) -> list[Example]:
    """Read words and UPOS of CoNLL-U, without the lines of multiword tokens and empty words."""
    found = []
    for block in path.read_text(encoding="utf-8").strip("\n").split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
        words = [row for row in rows if row[0].isdigit()]
        found.append(([row[1] for row in words], [row[3] for row in words]))
    return found


def _topics(folder: Path) -> Parts:
    """Read the texts of the ten largest topics; labels are joined by commas, an eighth is held out."""
    rows = {
        name: [line.split("\t") for line in _lines(folder / f"modapte_{name}.tsv")]
        for name in ("train", "test")
    }
    counts = Counter(topic for row in rows["train"] for topic in row[1].split(","))
    largest = {topic for topic, _ in counts.most_common(10)}
    kept = {
        name: [(f"{title} {body}", ",".join(sorted(largest & set(topics.split(",")))))
               for _, topics, title, body in each if largest & set(topics.split(","))]
        for name, each in rows.items()
    }  # fmt: skip
    learned = [row for at, row in enumerate(kept["train"]) if at % 8]
    return {"train": learned, "dev": kept["train"][::8], "test": kept["test"]}


def _cell(kind: str, task: str, parts: Parts, args: argparse.Namespace) -> dict[str, float]:
    """Train one program, and measure what it predicts."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, rows in parts.items():
            (folder / f"{name}.json").write_text(json.dumps(rows))
        if kind in ("auto", "lstm"):
            found, cpu = _ours(kind, task, parts, folder, args.minutes)
        else:
            python = {"flair": args.flair, "fasttext": args.fasttext}.get(kind, sys.executable)
            module = ["peers.flair_minutes", task] if kind == "flair" else ["peers.classic", kind]
            cpu = _spent([python, "-m", *module, str(folder), str(60 * args.minutes)])
            found = json.loads((folder / "found.json").read_text())
    return {"cpu": cpu} | _measured(task, found, [target for _, target in parts["test"]])


def _ours(kind: str, task: str, parts: Parts, folder: Path, minutes: float) -> tuple[list[Any], float]:
    ending = "conll" if task == "tag" else "tsv"
    for name, rows in parts.items():
        lines = (
            f"{text}\t{label}\n" if task == "classify"
            else "".join(f"{word}\t{tag}\n" for word, tag in zip(text, label, strict=True)) + "\n"
            for text, label in rows
        )  # fmt: skip
        (folder / f"{name}.{ending}").write_text("".join(lines), encoding="utf-8")
    program = [sys.executable, "-m", "nextword"]
    cpu = _spent([sys.executable, "-m", "peers.our_minutes", kind, task, str(folder), str(60 * minutes)])
    if task == "classify":
        (folder / "in.txt").write_text("".join(f"{text}\n" for text, _ in parts["test"]), encoding="utf-8")
        out = _run([*program, "predict", "run", "in.txt", "--json"], folder)
        every = [json.loads(line) for line in out.strip().split("\n")]
        found = [",".join(sorted(each["labels"])) if "labels" in each else each["label"] for each in every]
    else:
        (folder / "in.txt").write_text("".join(" ".join(words) + "\n" for words, _ in parts["test"]))
        out = _run([*program, "predict", "run", "in.txt", "--pretokenized", "--json"], folder)
        lines = [json.loads(line) for line in out.strip().split("\n")]
        found = [[token["tag"] for token in each["tokens"]] for each in lines]
    return found, cpu


def _spent(command: list[str]) -> float:
    """Run a program that prints its CPU seconds last."""
    return float(json.loads(_run(command).strip().split("\n")[-1])["cpu"])


def _run(command: list[str], folder: Path | None = None) -> str:
    one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    here = str(Path(__file__).parent.parent)
    path = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    environment = os.environ | one | {"PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} failed: {done.stderr[-800:]}")
    return done.stdout


def _measured(task: str, found: list[Any], gold: list[Any]) -> dict[str, float]:
    from nextword.evaluation.tagging import Scores, TagCounts

    if task == "tag":
        has_spans = any(tag == "O" for each in gold for tag in each)
        counts = TagCounts("bio" if has_spans else "none")
        for one, two in zip(gold, found, strict=True):
            counts.add(one, two)
        report = counts.report()
        return {"accuracy": report.accuracy} | ({"span_f1": report.span_f1 or 0.0} if has_spans else {})
    right = sum(one == two for one, two in zip(gold, found, strict=True)) / len(gold)
    if any("," in each for each in gold):
        there, said = ([set(filter(None, each.split(","))) for each in every] for every in (gold, found))
        both = [one & two for one, two in zip(there, said, strict=True)]
        counts = (sum(map(len, every)) for every in (both, said, there))
        return {"accuracy": right, "micro_f1": Scores.of(*counts).f1}
    spam = Scores.of(
        sum(one == two == "spam" for one, two in zip(gold, found, strict=True)),
        found.count("spam"), gold.count("spam"),
    )  # fmt: skip
    return {"accuracy": right} | ({"spam_f1": spam.f1} if "spam" in gold else {})


def _show(cells: dict[tuple[str, str], dict[str, Any]], minutes: float) -> None:
    print(f"\nQuality after {minutes:g} CPU minutes on one thread (CPU seconds used)\n")
    print(f"| program | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
    for program in PROGRAMS:
        own = [(cells.get((program, data)), name) for data, name in COLUMNS.values()]
        shown = [f"{cell[name]:.3f} ({cell['cpu']:.0f})" if cell else "" for cell, name in own]
        if any(shown):
            print(f"| {program} | {' | '.join(shown)} |")
