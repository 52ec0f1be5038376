"""fastText and scikit-learn as classifiers that have some CPU seconds: each tries settings on held-out texts.

    python -m peers.classic fasttext|sklearn FOLDER SECONDS

FOLDER has train.json, dev.json and test.json, lists of [text, label]; found.json gets the labels of the test
texts, and the CPU seconds after the imports are printed as JSON.
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
        lines = (f"__label__{label} {' '.join(text.lower().split())}\n" for text, label in rows)
        (folder / f"{name}.txt").write_text("".join(lines))
    texts = [" ".join(text.lower().split()) for text in read(folder, "test")[0]]
    best, found, seed = -1.0, [], 0
    while (left := seconds - (time.process_time() - began)) > 0.1 * seconds:
        model = peer.train_supervised(
            str(folder / "train.txt"), autotuneValidationFile=str(folder / "dev.txt"),
            autotuneDuration=max(2, round(left)), thread=1, verbose=0, seed=seed,
        )  # fmt: skip
        right, seed = model.test(str(folder / "dev.txt"))[1], seed + 1
        if right > best:
            best, found = right, [each[0].removeprefix("__label__") for each in model.predict(texts)[0]]
    return found, time.process_time() - began


def sklearn(folder: Path, seconds: float) -> tuple[list[str], float]:
    """Take the best tf-idf and C of a grid, as far as the time goes."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union

    began = time.process_time()
    learned, held = read(folder, "train"), read(folder, "dev")
    best, found = -1.0, []
    for characters, penalty in itertools.product((False, True), (10, 1, 30, 3, 100)):
        if found and time.process_time() - began > seconds:
            break
        parts = [TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+|[^\w\s]")]
        if characters:
            parts.append(TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True))
        model = make_pipeline(make_union(*parts), LogisticRegression(C=penalty, max_iter=1000)).fit(*learned)
        right = float(model.score(*held))
        if right > best:
            best, found = right, model.predict(read(folder, "test")[0]).tolist()
    return found, time.process_time() - began


if __name__ == "__main__":
    place = Path(sys.argv[2])
    predicted, spent = {"fasttext": fasttext, "sklearn": sklearn}[sys.argv[1]](place, float(sys.argv[3]))
    (place / "found.json").write_text(json.dumps(predicted))
    print(json.dumps({"cpu": spent}))
