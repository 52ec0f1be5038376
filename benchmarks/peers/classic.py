"""fastText and scikit-learn as classifiers that have some CPU seconds: each tries settings on held-out texts.

    python -m peers.classic fasttext|sklearn FOLDER SECONDS

FOLDER has train.json, dev.json and test.json, lists of [text, label]; found.json gets the labels of the test
texts, and the CPU seconds after the imports are printed as JSON. Several labels are joined by commas; one is
predicted if its probability is above a half.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path


def read(folder: Path, name: str) -> tuple[list[str], list[str]]:
    """Return texts and labels."""
    rows = json.loads((folder / f"{name}.json").read_text())
    return [text for text, _ in rows], [label for _, label in rows]


def fasttext(folder: Path, seconds: float) -> tuple[list[str], float]:
    """Let its own search (autotune, one thread) use the time; it counts wall time, so it may search again."""
    import fasttext as peer

    began = time.process_time()
    for name in ("train", "dev"):
        rows = zip(*read(folder, name), strict=True)
        lines = (
            f"{' '.join(f'__label__{each}' for each in label.split(','))} {' '.join(text.lower().split())}\n"
            for text, label in rows
        )
        (folder / f"{name}.txt").write_text("".join(lines))
    texts = [" ".join(text.lower().split()) for text in read(folder, "test")[0]]
    several = any("," in label for label in read(folder, "train")[1])
    loss, how = ({"loss": "ova"}, {"k": -1, "threshold": 0.5}) if several else ({}, {})
    best, found, seed = -1.0, [], 0
    while (left := seconds - (time.process_time() - began)) > 0.1 * seconds:
        model = peer.train_supervised(
            str(folder / "train.txt"), autotuneValidationFile=str(folder / "dev.txt"),
            autotuneDuration=max(2, round(left)), thread=1, verbose=0, seed=seed, **loss,
        )  # fmt: skip
        right, seed = sum(model.test(str(folder / "dev.txt"), **how)[1:]), seed + 1
        if right > best:
            best, every = right, model.predict(texts, **how)[0]
            found = [",".join(sorted(name.removeprefix("__label__") for name in each)) for each in every]
    return found, time.process_time() - began


def sklearn(folder: Path, seconds: float) -> tuple[list[str], float]:
    """Take the best tf-idf and C of a grid, as far as the time goes."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import MultiLabelBinarizer

    began = time.process_time()
    texts, labels = read(folder, "train")
    held, gold = read(folder, "dev")
    several = any("," in label for label in labels)
    names = MultiLabelBinarizer().fit([label.split(",") for label in labels])
    targets = names.transform([label.split(",") for label in labels]) if several else labels
    best, found = -1.0, []
    for characters, penalty in itertools.product((False, True), (10, 1, 30, 3, 100)):
        if found and time.process_time() - began > seconds:
            break
        parts = [TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+|[^\w\s]")]
        if characters:
            parts.append(TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True))
        linear = LogisticRegression(C=penalty, max_iter=1000)
        model = make_pipeline(make_union(*parts), OneVsRestClassifier(linear) if several else linear)
        made = model.fit(texts, targets).predict(held)
        if several:
            right = f1_score(names.transform([label.split(",") for label in gold]), made, average="micro")
        else:
            right = float(sum(a == b for a, b in zip(made, gold, strict=True)))
        if right > best:
            best, made = right, model.predict(read(folder, "test")[0])
            every = names.inverse_transform(made) if several else made.reshape(-1, 1)
            found = [",".join(sorted(each)) for each in every]
    return found, time.process_time() - began


if __name__ == "__main__":
    place = Path(sys.argv[2])
    predicted, spent = {"fasttext": fasttext, "sklearn": sklearn}[sys.argv[1]](place, float(sys.argv[3]))
    (place / "found.json").write_text(json.dumps(predicted))
    print(json.dumps({"cpu": spent}))
