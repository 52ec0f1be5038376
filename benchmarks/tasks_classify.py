"""The classifier `linear` against fastText and scikit-learn's tf-idf with logistic regression, one thread.

    python benchmarks/tasks_classify.py [--rounds 3] [--fasttext PYTHON] [--data ../shared/data]

The same texts, in CPU seconds after one round that is not counted (imports, compiled code): training from a
file to a model that classifies, and predicting the labels of a list of texts. fastText may be installed in
another environment: ``pip install fasttext-wheel``, and its interpreter is given with --fasttext.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

REPEATED = 20  # the test texts are predicted so many times over
Row = dict[str, float]


def read(path: Path) -> tuple[list[str], list[str]]:
    """Return texts and labels of ``text TAB label``."""
    rows = [line.rsplit("\t", 1) for line in path.read_text(encoding="utf8").splitlines()]
    return [text for text, _ in rows], [label for _, label in rows]


def ours(train: Path, characters: bool) -> Callable[[list[str]], list[str]]:
    """Train `linear` as `nextword train` does."""
    import nextword

    longest = 5 if characters else 0
    sets = {"model.max_n": longest, "model.scaling": "bayes", "data.text": "1", "data.label": "2"}
    run = nextword.train(str(train), task="classify", model="linear", set=sets).trained
    labels = run.vocabulary.labels
    return lambda texts: [labels[at] for at in run.model.logits(texts).argmax(axis=1)]


def fasttext(train: Path, characters: bool) -> Callable[[list[str]], list[str]]:
    """Train fastText with few epochs and small vectors; the quickest good setting of nine tried."""
    import fasttext as peer

    longest = 5 if characters else 0
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf8") as file:
        for text, label in zip(*read(train), strict=True):
            file.write(f"__label__{label} {text.lower()}\n")
        file.flush()
        model = peer.train_supervised(
            file.name, lr=1.0, epoch=5, dim=10, wordNgrams=2, bucket=200_000, minn=2 if characters else 0,
            maxn=longest, thread=1, verbose=0,
        )  # fmt: skip
    return lambda texts: [
        each[0].removeprefix("__label__") for each in model.predict([text.lower() for text in texts])[0]
    ]


def sklearn(train: Path, characters: bool) -> Callable[[list[str]], list[str]]:
    """Train logistic regression on tf-idf."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+|[^\w\s]")
    parts = [TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)] if characters else []
    texts, labels = read(train)
    model = make_pipeline(make_union(words, *parts), LogisticRegression(C=10, max_iter=1000)).fit(
        texts, labels
    )
    return lambda new: model.predict(new).tolist()


PROGRAMS: dict[str, Any] = {"linear": ours, "fasttext": fasttext, "sklearn": sklearn}


def work(name: str, train: Path, test: Path, characters: bool, rounds: int) -> None:
    """Measure one program and print a JSON object: what the child process does."""
    texts, labels = read(test)
    many = texts * REPEATED
    took: list[tuple[float, float]] = []
    found: list[str] = []
    for _ in range(rounds + 1):
        began = time.process_time()
        predict = PROGRAMS[name](train, characters)
        trained = time.process_time()
        found = predict(many)[: len(texts)]
        took.append((trained - began, time.process_time() - trained))
    right = sum(one == two for one, two in zip(found, labels, strict=True)) / len(labels)
    training, predicting = (median(each) for each in zip(*took[1:], strict=True))
    print(json.dumps({"training": training, "texts": len(many) / predicting, "accuracy": right}))


def measure(name: str, python: str, *args: object) -> Row | None:
    """Measure a program in a process of its own; None if it is not installed."""
    one_thread = {f"{each}_NUM_THREADS": "1" for each in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    done = subprocess.run(
        [python, __file__, "--worker", name, *map(str, args)],
        env=os.environ | one_thread, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["failed"])[-1]
        print(f"{name}: {last}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def files(data: Path, folder: Path) -> dict[str, tuple[Path, Path, bool]]:
    """Return training and test texts by name, and whether n-grams of characters are used."""
    train, test = folder / "sms.tsv", folder / "sms-test.tsv"
    rows = (data / "sms-spam" / "sms.tsv").read_text(encoding="utf8").splitlines()
    turned = ["\t".join(reversed(row.split("\t", 1))) for row in rows]
    train.write_text("".join(f"{row}\n" for at, row in enumerate(turned, 1) if at % 5), encoding="utf8")
    test.write_text("".join(f"{row}\n" for at, row in enumerate(turned, 1) if not at % 5), encoding="utf8")
    sst = data / "sst2"
    return {
        "SST-2, words": (sst / "train.tsv", sst / "test.tsv", False),
        "SMS, words and characters": (train, test, True),
    }


def main() -> None:
    """Measure all programs and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fasttext", default=sys.executable, help="an interpreter that has fastText")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--worker", nargs=5)
    args = parser.parse_args()
    if args.worker:
        name, train, test, characters, rounds = args.worker
        work(name, Path(train), Path(test), characters == "True", int(rounds))
        return
    print("| data | program | training, CPU s | texts/s predicted | accuracy |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for data, given in files(args.data, Path(folder)).items():
            for name in PROGRAMS:
                python = args.fasttext if name == "fasttext" else sys.executable
                if found := measure(name, python, *given, args.rounds):
                    print(
                        f"| {data} | {name} | {found['training']:.2f} | {found['texts']:,.0f} | "
                        f"{found['accuracy']:.2%} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
