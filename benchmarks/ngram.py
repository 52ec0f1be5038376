"""n-grams against KenLM and NLTK, side by side on this machine: time, memory, accuracy.

    python benchmarks/ngram.py [--data FOLDER] [--rounds 3] [--only build,arpa,score,memory,open,filter,nltk]

FOLDER has train.txt(.gz) and test.txt(.gz); default: the corpus `books`. lmplz and build_binary must
be on PATH (they are built from the sdist of the `kenlm` package, see benchmarks/README.md). Ours and
theirs alternate; figures are medians of wall time and of CPU time (all processes and threads).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.books import folder_of, plain

NEXTWORD = [sys.executable, "-m", "nextword"]


@dataclass
class Cost:
    wall: float
    cpu: float
    peak: float = 0.0  # megabytes, summed over the process tree


def command(words: list[str], out: Path | None = None, text: Path | None = None) -> Cost:
    """Run a command and measure it, children included."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with (
        open(text or os.devnull, "rb") as source,
        open(out or os.devnull, "wb") as sink,
        subprocess.Popen(words, stdin=source, stdout=sink, stderr=subprocess.PIPE) as process,
    ):
        peak = Peak(process.pid)
        errors = process.communicate()[1]
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} failed: {errors.decode(errors='replace')[-500:]}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak.stop())


class Peak(threading.Thread):
    """Samples the summed resident memory of a process and its children."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.most, self.going = pid, 0, True
        self.start()

    def run(self) -> None:
        while self.going:
            self.most = max(self.most, sum(map(resident, family(self.pid))))
            time.sleep(0.01)

    def stop(self) -> float:
        self.going = False
        self.join()
        return self.most / 1e6


def family(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        children = [int(c) for t in tasks for c in Path(f"/proc/{pid}/task/{t}/children").read_text().split()]
    except OSError:
        return []
    return [pid, *(p for c in children for p in family(c))]


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def alternate(
    rounds: int, ours: Callable[[], Cost], theirs: Callable[[], Cost]
) -> tuple[list[Cost], list[Cost]]:
    found: tuple[list[Cost], list[Cost]] = ([], [])
    for _ in range(rounds):
        found[0].append(ours())
        found[1].append(theirs())
    return found


def median(costs: list[Cost], what: str) -> float:
    return statistics.median(getattr(c, what) for c in costs)


def report(name: str, ours: list[Cost], theirs: list[Cost], peer: str, unit: str = "s") -> None:
    wall, cpu = (median(theirs, w) / median(ours, w) for w in ("wall", "cpu"))
    print(
        f"{name:34s} ours {median(ours, 'wall'):8.2f} {unit} wall {median(ours, 'cpu'):7.2f} CPU | "
        f"{peer} {median(theirs, 'wall'):8.2f} {unit} wall {median(theirs, 'cpu'):7.2f} CPU | "
        f"ratio {wall:.2f}x wall, {cpu:.2f}x CPU"
        + (
            f" | peak {median(ours, 'peak'):.0f} against {median(theirs, 'peak'):.0f} MB"
            if ours[0].peak
            else ""
        ),
        flush=True,
    )


class Bench:
    """The files of one comparison."""

    def __init__(self, data: Path, work: Path, rounds: int) -> None:
        self.work, self.rounds = work, rounds
        self.train, self.test = plain(data, "train", work), plain(data, "test", work)

    def train_ours(self, name: str = "run", *sets: str) -> Cost:
        options = [word for each in sets for word in ("--set", each)]
        words = ["train", str(self.train), "--model", "ngram", "--tokenizer", "words", *options]
        return command([*NEXTWORD, *words, "--out", str(self.work / name), "--overwrite"])

    def lmplz(self, *options: str) -> Cost:
        return command(
            ["lmplz", "-o", "5", "-T", str(self.work), *options], self.work / "theirs.arpa", self.train
        )

    def build_binary(self) -> Cost:
        return command(
            ["build_binary", "probing", str(self.work / "theirs.arpa"), str(self.work / "theirs.bin")]
        )

    def build(self) -> None:
        def peer() -> Cost:
            a, b = self.lmplz("-S", "80%"), self.build_binary()
            return Cost(a.wall + b.wall, a.cpu + b.cpu, max(a.peak, b.peak))

        self.train_ours()  # compiles the kernels, once per machine
        report(
            "text -> queryable model",
            *alternate(self.rounds, self.train_ours, peer),
            "lmplz + build_binary",
        )
        out = subprocess.run([*NEXTWORD, "eval", str(self.work / "run"), str(self.test), "--json"],
                             capture_output=True, check=True).stdout  # fmt: skip
        ours, theirs = json.loads(out)["perplexity"], self.their_perplexity()
        print(f"    test perplexity: ours {ours:.3f}, theirs {theirs:.3f}")

    def their_perplexity(self) -> float:
        import kenlm

        model, nats, tokens = kenlm.Model(str(self.work / "theirs.bin")), 0.0, 0
        for line in self.test.read_text().split("\n")[:-1]:
            nats += model.score(line)
            tokens += len(line.split()) + 1
        return float(10 ** (-nats / tokens))

    def arpa(self) -> None:
        def ours() -> Cost:
            a = self.train_ours()
            b = command([*NEXTWORD, "export", str(self.work / "run"), "--to", "arpa", "--out",
                         str(self.work / "ours.arpa")])  # fmt: skip
            (self.work / "ours.arpa").unlink()
            return Cost(a.wall + b.wall, a.cpu + b.cpu, max(a.peak, b.peak))

        report("text -> ARPA file", *alternate(self.rounds, ours, lambda: self.lmplz("-S", "80%")), "lmplz")

    def memory(self) -> None:
        ours, theirs = alternate(
            1, lambda: self.train_ours("small", "train.memory=500M"), lambda: self.lmplz("-S", "500M")
        )
        report("text -> model within 500 MB", ours, theirs, "lmplz -S 500M (ARPA)")

    def score(self) -> None:
        import kenlm

        import nextword.kenlm

        config = nextword.kenlm.Config()
        config.load_method = nextword.kenlm.LoadMethod.READ  # all n-grams in memory, as KenLM has them
        began = time.perf_counter()
        model = nextword.kenlm.Model(str(self.work / "run"), config)
        loading = time.perf_counter() - began
        peer = kenlm.Model(str(self.work / "theirs.bin"))
        lines = self.test.read_text().split("\n")[:-1] * 8
        words = sum(len(line.split()) + 1 for line in lines) / 1e6
        found = model.score_many(lines)  # warm
        expected = [peer.score(line) for line in lines]
        worst = max(abs(a - b) for a, b in zip(found, expected, strict=True))
        ours, theirs = alternate(
            2 * self.rounds + 1,
            lambda: in_process(lambda: model.score_many(lines)),
            lambda: in_process(lambda: [peer.score(line) for line in lines]),
        )
        report("score lines in memory", ours, theirs, "kenlm.Model.score")
        speed, core = words / median(ours, "wall"), words / median(ours, "cpu")
        other = words / median(theirs, "wall")
        print(f"    M words/s: ours {speed:.2f} ({core:.2f} a core), theirs {other:.2f}")
        print(f"    our n-grams were put into memory in {loading:.1f} s")
        print(f"    largest difference of a line {worst:.1e} in log10 (KenLM adds up in float32)")

    def open(self) -> None:
        code = (
            "import time, sys, nextword.api.run, nextword.ngram.model; import nextword\n"
            "t = time.perf_counter(); run = nextword.load(sys.argv[1]); run.score('the king said')\n"
            "print(time.perf_counter() - t)"
        )
        seconds = [
            float(subprocess.run([sys.executable, "-c", code, str(self.work / "run")],
                                 capture_output=True, check=True).stdout)
            for _ in range(5)
        ]  # fmt: skip
        print(f"{'load and a first score':34s} {statistics.median(seconds):.3f} s, imports apart")

    def filter(self) -> None:
        big = self.work / "lines.txt"
        big.write_bytes(self.test.read_bytes() * 20)
        run, size = str(self.work / "run"), big.stat().st_size / 1e6
        ours, theirs = alternate(
            self.rounds,
            lambda: command([*NEXTWORD, "filter", run, str(big), "--keep", "below:500"]),
            lambda: command([*NEXTWORD, "score", run, str(big)]),
        )
        report("filter", ours, theirs, "our own score")
        print(
            f"    MB/s: filter {size / median(ours, 'wall'):.1f}, score {size / median(theirs, 'wall'):.1f}"
        )

    def nltk(self) -> None:
        from nltk.lm import KneserNeyInterpolated
        from nltk.lm.preprocessing import padded_everygram_pipeline

        lines = self.train.read_text().split("\n")[:2000]
        sample = self.work / "sample.txt"
        sample.write_text("\n".join(lines) + "\n")
        words = sum(len(line.split()) + 1 for line in lines)
        model = KneserNeyInterpolated(order=3)

        def fit() -> None:
            model.fit(*padded_everygram_pipeline(3, [line.split() for line in lines]))

        def ours() -> Cost:
            return command([*NEXTWORD, "train", str(sample), "--model", "ngram", "--set", "model.order=3",
                            "--out", str(self.work / "sample"), "--overwrite"])  # fmt: skip

        theirs, mine = in_process(fit), ours()
        held_out = [line.split() for line in self.test.read_text().split("\n")[:3]]
        scored = in_process(
            lambda: [model.logscore(w, s[max(0, i - 2) : i]) for s in held_out for i, w in enumerate(s)]
        )
        print(
            f"{'NLTK, order 3':34s} fit {words / theirs.wall:,.0f} words/s; ours {words / mine.wall:,.0f} "
            f"words/s of {words:,} (the whole command); its Kneser-Ney scores "
            f"{sum(map(len, held_out)) / scored.wall:,.0f} words/s"
        )


def in_process(work: Callable[[], object]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="build,arpa,score,memory,open,filter,nltk")
    given = parser.parse_args()
    missing = [tool for tool in ("lmplz", "build_binary") if shutil.which(tool) is None]
    if missing:
        raise SystemExit(f"{', '.join(missing)}: not on PATH; benchmarks/README.md says how to build them")
    with tempfile.TemporaryDirectory(prefix="nextword-bench-") as work:
        bench = Bench(folder_of(given.data), Path(work), given.rounds)
        for name in given.only.split(","):
            getattr(bench, name)()


if __name__ == "__main__":
    main()
