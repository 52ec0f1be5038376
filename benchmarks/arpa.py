"""ARPA files against KenLM: text -> ARPA, reading, writing, and scoring through the kenlm interface.

    python benchmarks/arpa.py [--data FOLDER] [--order 5] [--rounds 3] [--scratch DIR]

Alternates us and the peer in every round and prints medians of wall time and of the CPU time of all
processes. ``lmplz`` comes from PATH or $NEXTWORD_LMPLZ; without it, or without the kenlm module, its rows
are left out.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.books import folder_of, plain

Times = dict[str, list[tuple[float, float]]]


def cpu() -> float:
    """Seconds of this process and of all its children."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def timed(times: Times, name: str, work: Callable[[], Any]) -> Any:
    """Run once and keep wall and CPU seconds."""
    wall, before = time.perf_counter(), cpu()
    result = work()
    times.setdefault(name, []).append((time.perf_counter() - wall, cpu() - before))
    return result


def by_lmplz(lmplz: str, text: Path, order: int, out: Path) -> None:
    """Text -> ARPA as KenLM does it."""
    command = [lmplz, "-o", str(order), "-S", "4G", "-T", str(out.parent)]
    with open(text, "rb") as source, open(out, "wb") as target:
        subprocess.run(command, stdin=source, stdout=target, stderr=subprocess.DEVNULL, check=True)


def by_us(text: Path, order: int, run: Path, out: Path) -> None:
    """Text -> saved run -> ARPA, from the command line."""
    program = [sys.executable, "-m", "nextword"]
    options = ["--model", "ngram", "--tokenizer", "words", "--set", f"model.order={order}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(
        [*program, "train", str(text), *options, "--out", str(run), "--overwrite"], check=True, **quiet
    )
    subprocess.run([*program, "export", str(run), "--to", "arpa", "--out", str(out)], check=True, **quiet)


def one_round(times: Times, args: argparse.Namespace, scratch: Path) -> None:
    """Everything once, us and the peer in turn."""
    from nextword import kenlm as ours
    from nextword.formats.arpa.files import read_arpa, write_arpa

    lmplz = os.environ.get("NEXTWORD_LMPLZ") or shutil.which("lmplz")
    mine, theirs = scratch / "ours.arpa", scratch / "lmplz.arpa"
    timed(times, "text -> ARPA, nextword", lambda: by_us(args.text, args.order, scratch / "run", mine))
    if lmplz:
        timed(times, "text -> ARPA, lmplz", lambda: by_lmplz(lmplz, args.text, args.order, theirs))
    found = timed(times, "read our ARPA", lambda: read_arpa(mine))
    timed(times, "write ARPA", lambda: write_arpa(scratch / "again.arpa", found.trie, found.vocabulary))
    if lmplz:
        timed(times, "read lmplz's ARPA", lambda: read_arpa(theirs))
    lines = args.test.read_text(encoding="utf-8").split("\n")
    model = timed(times, "kenlm interface, load, nextword", lambda: ours.Model(scratch / "run"))
    model.score_many(lines)  # load the kernels
    timed(times, "score_many, nextword", lambda: model.score_many(lines))
    timed(times, "score one by one, nextword", lambda: [model.score(line) for line in lines])
    try:
        import kenlm
    except ImportError:
        return
    model = timed(times, "kenlm interface, load, kenlm (ARPA)", lambda: kenlm.Model(str(mine)))
    timed(times, "score one by one, kenlm", lambda: [model.score(line) for line in lines])


def main() -> None:
    """Print one row for each piece of work."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scratch", default=None)
    args = parser.parse_args()
    times: Times = {}
    with tempfile.TemporaryDirectory(dir=args.scratch) as folder:
        data = folder_of(args.data)
        args.text, args.test = plain(data, "train", Path(folder)), plain(data, "test", Path(folder))
        for _ in range(args.rounds):
            one_round(times, args, Path(folder))
        size = (Path(folder) / "ours.arpa").stat().st_size
    print(f"{size / 1e6:,.0f} MB of ARPA, order {args.order}, medians of {args.rounds}")
    for name, found in times.items():
        wall, used = (statistics.median(values) for values in zip(*found, strict=True))
        print(f"{name:<40} {wall:8.2f} s   CPU {used:8.2f} s   {size / wall / 1e6:8.0f} MB/s")


if __name__ == "__main__":
    main()
