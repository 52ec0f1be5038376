"""The unbounded n-gram against infini-gram (PyPI): building the suffix array, and queries.

    python benchmarks/unbounded.py [--data FOLDER] [--rounds 3] [--queries 1000] [--folder TMP]

FOLDER has train.txt(.gz) and test.txt(.gz), of some megabytes; default: the corpus `books`. Ours and the peer
alternate in every round; the table gives medians of wall and CPU seconds (the peer's processes included) and
the ratios. Build: ids -> suffix array, in memory for us; the peer gets the ids as its own file and runs the
three steps of its own indexer. Queries:
longest match, its count and the count of the next word: `match` of many contexts, `match_packed` of every
place of a text, against `infgram_prob` call by call. Every answer of the peer is compared with ours.
The peer has 2 bytes a word: both get the text with its 65,532 most frequent words, the others unknown.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from support.books import folder_of, packed

from nextword.core.contracts import END, START
from nextword.ngram import unbounded
from nextword.ngram.fast.estimate import cores
from nextword.ngram.unbounded import UnboundedModel, UnboundedSettings

WORDS = 2**16 - 1  # with 4 bytes a word the peer's indexer asks for 32 GB
SEPARATOR = WORDS


def cpu() -> float:
    """CPU seconds of this process and of those it waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in both)


class Watch:
    """Wall and CPU seconds by name, one pair for each round."""

    def __init__(self) -> None:
        self.times: dict[str, list[tuple[float, float]]] = {}

    def run(self, name, work):
        """Do it, and note how long it took."""
        wall, used = time.perf_counter(), cpu()
        result = work()
        self.times.setdefault(name, []).append((time.perf_counter() - wall, cpu() - used))
        return result

    def median(self, name: str) -> tuple[float, float]:
        """Wall and CPU."""
        wall, used = zip(*self.times[name], strict=True)
        return statistics.median(wall), statistics.median(used)


def write_peer_text(ids: np.ndarray, folder: Path) -> None:
    """The text as infini-gram's indexer writes it: a separator, then the words, for every sequence."""
    kept = ids[ids != END]
    words = np.where(kept == START, SEPARATOR, kept).astype("<u2")
    words.tofile(folder / "tokenized.0")
    (np.flatnonzero(words == SEPARATOR).astype("<u8") * 2).tofile(folder / "offset.0")


def build_peer(folder: Path) -> None:
    """Step 2 of `infini_gram.indexing`, as it is called there for one batch."""
    import infini_gram

    tool = Path(infini_gram.__file__).parent / "rust_indexing"
    data, size = folder / "tokenized.0", (folder / "tokenized.0").stat().st_size
    ratio, width, hack, jobs = int(np.ceil(np.log2(size) / 8)), 2, 100_000, cores()
    for name in ("parts", "merged"):
        (folder / name).mkdir(exist_ok=True)
        for old in (folder / name).iterdir():
            old.unlink()
    step = size // jobs
    step += -step % width
    common = ["--data-file", str(data), "--ratio", str(ratio), "--token-width", str(width)]
    parts = [subprocess.Popen([
        str(tool), "make-part", *common, "--parts-dir", str(folder / "parts"),
        "--start-byte", str(i * step), "--end-byte", str(min((i + 1) * step + hack, size)),
    ], stdout=subprocess.DEVNULL) for i in range(jobs)]  # fmt: skip
    assert not any(part.wait() for part in parts)
    threads = ["--num-threads", str(jobs)]
    subprocess.run([
        str(tool), "merge", *common, *threads, "--hacksize", str(hack),
        "--parts-dir", str(folder / "parts"), "--merged-dir", str(folder / "merged"),
    ], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    subprocess.run([
        str(tool), "concat", *common, *threads,
        "--merged-dir", str(folder / "merged"), "--merged-file", str(folder / "table.0"),
    ], check=True, stdout=subprocess.DEVNULL)  # fmt: skip


def most_frequent(ids: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both texts with as many words as the peer can number, the most frequent ones; 0 for all others."""
    counts = np.bincount(ids, minlength=1 + max(int(ids.max()), int(test.max())))
    counts[:3] = counts.max() + 1 + np.arange(3, 0, -1)  # UNKNOWN, START and END keep their numbers
    number = np.empty(len(counts), dtype=np.int32)
    number[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    number[number >= WORDS] = 0
    return number[ids], number[test]


def queries(ids: np.ndarray, count: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Places of a text chosen at random: the words of the sequence so far, and the word that follows."""
    places = np.flatnonzero((ids != START) & (ids != END))
    chosen = np.random.default_rng(seed).choice(places, size=count, replace=count > len(places))
    starts = np.maximum.accumulate(np.where(ids == START, np.arange(len(ids)), 0))
    return [np.ascontiguousarray(ids[starts[p] + 1 : p]) for p in chosen], ids[chosen]


def ask_peer(engine, contexts: list[np.ndarray], words: np.ndarray) -> list[tuple[int, int, int]]:
    """One call for each query."""
    found = []
    for context, word in zip(contexts, words, strict=True):
        answer = engine.infgram_prob(context.tolist(), int(word))
        found.append((answer["suffix_len"], answer["prompt_cnt"], answer["cont_cnt"]))
    return found


def check(model: UnboundedModel, contexts: list[np.ndarray], words: np.ndarray, theirs) -> int:
    """How many of the peer's answers are ours too (without a match it counts the separators in)."""
    ours = model.match(contexts, words)
    return sum(
        a == found[0] and (a == 0 or (b, c) == found[1:])
        for found, a, b, c in zip(
            theirs, ours.lengths.tolist(), ours.totals.tolist(), ours.hits.tolist(), strict=True
        )
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--queries", type=int, default=1000, help="of the peer; ours: 100 times as many")
    parser.add_argument("--folder", type=Path, default=None, help="where the peer's files go")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        ids, test = most_frequent(*packed(folder_of(given.data), Path(work)))
    size = WORDS
    chosen, watch = UnboundedSettings(smoothing="none"), Watch()
    unbounded.build(ids[: int(np.flatnonzero(ids[:700_000] == END)[-1]) + 1], size, chosen)  # compiled before
    agreed = asked = 0
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        write_peer_text(ids, folder)
        for _ in range(given.rounds):
            model = watch.run("build", lambda: unbounded.build(ids, size, chosen))
            watch.run("build peer", lambda: build_peer(folder))
        from infini_gram.engine import InfiniGramEngine

        engine = InfiniGramEngine(
            index_dir=str(folder), eos_token_id=END, vocab_size=WORDS, version=4, token_dtype="u16"
        )
        model.match(*queries(test, 2000, 99))
        for seed in range(given.rounds):
            many, few = queries(test, 100 * given.queries, seed), queries(test, given.queries, 50 + seed)
            watch.run("match", lambda many=many: model.match(*many))
            watch.run("match_packed", lambda: model.match_packed(test))
            theirs = watch.run("query peer", lambda few=few: ask_peer(engine, *few))
            agreed, asked = agreed + check(model, *few, theirs), asked + len(theirs)
    report(watch, len(ids), len(test), given.queries)
    print(f"{agreed:,} of {asked:,} answers of the peer equal ours")


def report(watch: Watch, ids: int, test: int, count: int) -> None:
    """The table."""
    ours, peer = watch.median("build"), watch.median("build peer")
    print(f"{ids:,} ids, {cores()} cores; medians of {len(watch.times['build'])} rounds")
    print(f"{'':<34}{'wall s':>10}{'CPU s':>10}{'x wall':>9}{'x CPU':>9}")
    for label, (wall, used) in (("build, nextword", ours), ("build, infini-gram", peer)):
        print(f"{label:<34}{wall:>10.2f}{used:>10.2f}{peer[0] / wall:>9.1f}{peer[1] / used:>9.1f}")
    print(f"{'':<34}{'per wall s':>10}{'per CPU s':>10}{'x wall':>9}{'x CPU':>9}")
    slow = [count / seconds for seconds in watch.median("query peer")]
    for name, size in (("match", 100 * count), ("match_packed", test), ("query peer", count)):
        fast = [size / seconds for seconds in watch.median(name)]
        label = "infini-gram, infgram_prob" if name == "query peer" else f"queries, nextword {name}"
        ratios = f"{fast[0] / slow[0]:>9.0f}{fast[1] / slow[1]:>9.0f}"
        print(f"{label:<34}{fast[0]:>10,.0f}{fast[1]:>10,.0f}{ratios}")


if __name__ == "__main__":
    main()
