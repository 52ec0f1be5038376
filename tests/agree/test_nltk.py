"""Count models against nltk.lm, where it has the method and counts what we count."""

from __future__ import annotations

import numpy as np
import pytest
from packed_texts import zipf_text

from nextword.core.contracts import END, START
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings

pytestmark = [pytest.mark.agree, pytest.mark.needs("nltk")]


@pytest.fixture(scope="module")
def text() -> np.ndarray:
    return zipf_text(300, 40, seed=2)


def nltk_model(kind: str, ids: np.ndarray, order: int, **options: float):
    from nltk import lm
    from nltk.lm.preprocessing import padded_everygram_pipeline

    sentences = [
        [str(i) for i in piece if i > END] for piece in np.split(ids, np.flatnonzero(ids == START)[1:])
    ]
    model = getattr(lm, kind)(order=order, **options)
    model.fit(*padded_everygram_pipeline(order, sentences))
    return model


@pytest.mark.parametrize(
    ("ours", "theirs", "options"), [("mle", "MLE", {}), ("stupid", "StupidBackoff", {"alpha": 0.4})]
)
def test_bigrams_are_those_of_nltk(ours, theirs, options, text):
    reference = nltk_model(theirs, text, 2, **options)
    model = estimation.build(text, 40, NgramSettings(order=2, smoothing=ours))
    for context in (START, 3, 4, 7):
        state = model.start(1) if context == START else model.score(np.array([[context]]), np.array([1]))[1]
        p_V = np.exp(model.next(state)[0])
        for word in (3, 4, 5, 20, END):
            name = "</s>" if word == END else str(word)
            expected = reference.score(name, ["<s>" if context == START else str(context)])
            if (
                ours == "stupid"
                and word != END
                and reference.counts[["<s>" if context == START else str(context)]][name] == 0
            ):
                # nltk's unigram counts hold START too, which is never predicted: N differs by the sentences
                expected *= reference.counts[1].N() / (reference.counts[1].N() - reference.counts["<s>"])
            assert p_V[word] == pytest.approx(expected, rel=1e-6)


def test_add_delta_is_lidstone_but_for_start_which_is_never_predicted(text):
    reference = nltk_model("Lidstone", text, 2, gamma=0.5)
    model = estimation.build(text, 40, NgramSettings(order=2, smoothing="add", delta=0.5))
    p_V = np.exp(model.next(model.score(np.array([[3]]), np.array([1]))[1])[0])
    total = reference.counts[["3"]].N()
    size = len(reference.vocab) - 1  # without START
    ids = sorted({int(i) for i in text if i > END})
    unused = 40 - 3 - len(ids)  # ids of ours that the text does not have
    for word in ids:
        expected = (reference.counts[["3"]][str(word)] + 0.5) / (total + 0.5 * (size + unused))
        assert p_V[word] == pytest.approx(expected, rel=1e-6)
