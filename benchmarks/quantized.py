"""Size and perplexity of quantized n-gram models against KenLM's quantized tries, on the same text.

    python benchmarks/quantized.py [--data FOLDER] [--share 5] [--order 5] [--bits 8,6,4]

Takes every fifth line (``--share``) of the corpus `books`, or of FOLDER's train.txt(.gz), and measures on
test.txt(.gz). lmplz, build_binary and query must be on PATH (see benchmarks/README.md). Bytes are those of
the whole run folder, its vocabulary and card included, and of KenLM's one file.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.books import folder_of, plain

NEXTWORD = [sys.executable, "-m", "nextword"]
QUANTIZED = ["-q", "8", "-b", "8"]
THEIRS = {"trie": [], "trie -q 8 -b 8": QUANTIZED, "trie -q 8 -b 8 -a 22": [*QUANTIZED, "-a", "22"]}


def thinned(text: Path, share: int) -> Path:
    """Keep one line of so many."""
    target = text.with_name("part.txt")
    with open(text, "rb") as source, open(target, "wb") as sink:
        sink.writelines(line for k, line in enumerate(source, start=1) if k % share == 0)
    return target


def ours(text: Path, test: Path, order: int, bits: int) -> tuple[int, float, float]:
    """Return bytes, perplexity and CPU seconds of loading a run."""
    run = text.with_name(f"run-{bits}")
    sets = ["--set", f"model.order={order}", "--set", f"model.bits={bits}"]
    words = ["--model", "ngram", "--tokenizer", "words", *sets, "--out", str(run)]
    subprocess.run([*NEXTWORD, "train", str(text), *words], check=True, capture_output=True)
    found = subprocess.run(
        [*NEXTWORD, "eval", str(run), str(test), "--json"], check=True, capture_output=True
    )
    size = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    return size, float(json.loads(found.stdout)["perplexity"]), loading(run)


def loading(run: Path) -> float:
    """Return the CPU seconds of opening a run in a new process, imports of nextword apart."""
    code = (
        "import sys, time, nextword, nextword.api.run, nextword.ngram.model\n"
        "began = time.process_time(); nextword.load(sys.argv[1]); print(time.process_time() - began)"
    )
    words = [sys.executable, "-c", code, str(run)]
    return min(float(subprocess.run(words, check=True, capture_output=True).stdout) for _ in range(3))


def theirs(arpa: Path, test: Path, options: list[str]) -> tuple[int, float]:
    """Return bytes and perplexity of a binary file."""
    target = arpa.with_suffix(".bin")
    subprocess.run(
        ["build_binary", *options, "trie", str(arpa), str(target)], check=True, capture_output=True
    )
    with open(test, "rb") as source:
        words = ["query", "-v", "summary", str(target)]
        shown = subprocess.run(words, stdin=source, check=True, capture_output=True, text=True).stdout
    found = re.search(r"including OOVs:\s*(\S+)", shown)
    assert found is not None
    return target.stat().st_size, float(found[1])


def row(name: str, size: int, perplexity: float, more: str = "") -> None:
    """Print one form."""
    print(f"{name:34s} {size / 1e6:8.2f} MB   perplexity {perplexity:8.3f}{more}", flush=True)


def main() -> None:
    """Print one row for each form."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--share", type=int, default=5)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--bits", default="8,6,4")
    given = parser.parse_args()
    missing = [tool for tool in ("lmplz", "build_binary", "query") if shutil.which(tool) is None]
    if missing:
        raise SystemExit(f"{', '.join(missing)}: not on PATH; benchmarks/README.md says how to build them")
    with tempfile.TemporaryDirectory(prefix="nextword-bench-") as work:
        data = folder_of(given.data)
        text, test = thinned(plain(data, "train", Path(work)), given.share), plain(data, "test", Path(work))
        began = time.perf_counter()
        for bits in (0, *map(int, given.bits.split(","))):
            size, perplexity, seconds = ours(text, test, given.order, bits)
            name = f"ours, {bits} bits" if bits else "ours, not quantized"
            row(name, size, perplexity, f"   loading {seconds:.2f} s CPU")
        arpa = text.with_name("theirs.arpa")
        with open(text, "rb") as source, open(arpa, "wb") as sink:
            words = ["lmplz", "-o", str(given.order), "-S", "2G", "-T", work]
            subprocess.run(words, stdin=source, stdout=sink, stderr=subprocess.DEVNULL, check=True)
        for name, options in THEIRS.items():
            size, perplexity = theirs(arpa, test, options)
            row(f"KenLM, {name}", size, perplexity)
        print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
