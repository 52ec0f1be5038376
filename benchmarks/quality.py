"""Quality per minute: what a model has learnt after so many minutes on this machine, ours and the peers'.

    python benchmarks/quality.py [--data wikitext2-words,…] [--minutes 1,5] [--models auto,lstm,kenlm,…]
                                 [--results quality.jsonl] [--set KEY=VALUE] [--table]

Every cell (text, minutes, model) is a separate run whose result is a line of the results file; a cell that is
there is not run again. All train on the same text and are measured on the same test text: perplexity per word
on the words of WikiText-2, bits per byte elsewhere. Peers at their own settings: KenLM (lmplz on words,
characters or BPE pieces), the loop of PyTorch's example, nanoGPT's settings for a CPU, told how long it has.
The loops also run with the allocator setting that our program makes for itself (`example-allocator`,
`nano-allocator`). nanoGPT is measured in windows that overlap by half, so that its words have as much context
as ours. KenLM's characters are of order 8, as those of `auto`, if lmplz was built with -DKENLM_MAX_ORDER=8.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from support import cells

PEERS = (
    "kenlm", "kenlm-characters", "kenlm-pieces", "example", "nano", "example-allocator", "nano-allocator",
)  # fmt: skip
OURS = ("auto", "ngram", "window", "rnn", "lstm", "gru", "mingru", "transformer")
Row = dict[str, Any]


def models_of(data: str) -> tuple[str, ...]:
    """Who can say something about a text: KenLM cannot spell a word, so its words have no bits per byte."""
    words = data == "wikitext2-words"
    skipped = {"kenlm-characters", "kenlm-pieces"} if words else {"kenlm"}
    return tuple(name for name in (*PEERS, *OURS) if name not in skipped)


def run_cell(data: str, minutes: float, model: str, sets: list[str]) -> Row:
    """One cell, from nothing."""
    with tempfile.TemporaryDirectory(prefix="quality-") as folder:
        work = Path(folder)
        found = cells.cut(data, work)
        if model.startswith("kenlm"):
            unit = model.partition("-")[2] or "words"
            result = cells.kenlm(8 if unit == "characters" else 5, unit, found, work)
        elif model in PEERS:
            name, _, same = model.partition("-")
            result = cells.peer(name, minutes, found, work, allocator=bool(same))
        else:
            result = cells.ours(model, minutes, found, work, sets)
    busy = os.getloadavg()[0]
    return {"data": data, "minutes": minutes, "model": model, "load": round(busy, 1), "sets": sets, **result}


def read_rows(path: Path) -> list[Row]:
    """What is known already."""
    return [json.loads(line) for line in path.read_text().split("\n") if line] if path.exists() else []


def key(row: Row) -> tuple[str, float, str]:
    """What makes a cell."""
    return row["data"], float(row["minutes"]), row["model"]


def show(rows: list[Row]) -> None:
    """One table for each text and time, best first, with the verdict on `auto`."""
    for data, minutes in sorted({key(row)[:2] for row in rows}):
        unit = "perplexity" if data == "wikitext2-words" else "bits_per_byte"
        cell = [row for row in rows if key(row)[:2] == (data, minutes)]
        good = sorted((row for row in cell if unit in row), key=lambda row: row[unit])
        print(f"\n{data}, {minutes:g} minutes: {unit.replace('_', ' ')} of the test text")
        for row in good:
            who, note = "peer" if row["model"] in PEERS else "", row.get("note", "")
            print(
                f"  {row['model']:<18}{row[unit]:>10.4g}  {row['seconds']:>6.0f} s  {who:<5} {note}".rstrip()
            )
        for row in cell:
            if "failed" in row:
                print(f"  {row['model']:<18} failed: {row['failed']}")
        print("  " + verdict(good, unit))


def verdict(good: list[Row], unit: str) -> str:
    """Whether `auto` is below every peer."""
    auto = [row[unit] for row in good if row["model"] == "auto"]
    peers = {row["model"]: row[unit] for row in good if row["model"] in PEERS}
    if not auto or not peers:
        return "verdict: not yet, `auto` or the peers are missing"
    best = min(peers, key=lambda name: peers[name])
    word = "below every peer" if auto[0] < peers[best] else "NOT below every peer"
    return f"verdict: auto is {word}: {auto[0]:.4g} against {peers[best]:.4g} ({best})"


def main() -> None:
    """Run what is asked for and not there, then show the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=",".join(cells.DATA))
    parser.add_argument("--minutes", default="1,5")
    parser.add_argument("--models", default="", help="default: all that fit the text")
    parser.add_argument("--results", type=Path, default=Path("quality.jsonl"))
    parser.add_argument("--set", action="append", default=[], dest="sets", help="a setting of ours")
    parser.add_argument("--again", action="store_true", help="run cells that are there once more")
    parser.add_argument("--table", action="store_true", help="only show what is there")
    args = parser.parse_args()
    known = {key(row): row for row in read_rows(args.results)}
    for data in args.data.split(",") if not args.table else []:
        for minutes in map(float, args.minutes.split(",")):
            for model in args.models.split(",") if args.models else models_of(data):
                if (data, minutes, model) in known and not args.again:
                    continue
                began = time.perf_counter()
                same = [row for row in known.values() if (row["data"], row["model"]) == (data, model)]
                if model.startswith("kenlm") and same:  # it needs no minutes, so they change nothing
                    row = {**same[0], "minutes": minutes}
                else:
                    row = run_cell(data, minutes, model, args.sets)
                with args.results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                known[key(row)] = row
                value = (
                    row.get("failed") or f"{row['perplexity']:.1f}, {row['bits_per_byte']:.3f} bits per byte"
                )
                took = time.perf_counter() - began
                print(f"{data} {minutes:g} min {model}: {value} ({took:.0f} s in all)", flush=True)
    show(list(known.values()))


if __name__ == "__main__":
    main()
