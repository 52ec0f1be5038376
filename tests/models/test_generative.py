"""A language model for each label, and Bayes' rule."""

from collections import Counter
from pathlib import Path

import hashed_features as plain
import numpy as np
import pytest
from labelled_texts import labelled_texts, several_labels

import nextword
from nextword.core.errors import DamagedError
from nextword.data.classes import ClassVocabulary
from nextword.models.generative import FAMILY, GenerativeClassifier, GenerativeSettings, _Way, count
from nextword.models.selection import Examples
from nextword.text.lexicon import Lexicon

TEXTS = ["a b a c", "b b a", "c a b a", "c c d a", "", "d"]
LABELS = [0, 0, 1, 1, 0, 1]
VOCABULARY = ClassVocabulary(Lexicon((), (), ()), ("x", "y"))


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.tsv").write_text(labelled_texts(200))
    Path("test.tsv").write_text(labelled_texts(30, seed=1))
    Path("several.tsv").write_text(several_labels(200))


def model_of(way, **sets):
    settings = GenerativeSettings(**sets)
    examples = Examples(TEXTS, np.array(LABELS), np.arange(len(TEXTS) + 1), 2, False)
    return GenerativeClassifier(VOCABULARY, way, count(examples, way, settings), settings.length)


def plain_score(text, label, way, alpha=1.0):
    """Score a text with a dictionary of counts, straight from the equations."""
    characters = way.tokens == "characters"
    read = [plain.tokens(each, characters) for each, of in zip(TEXTS, LABELS, strict=True) if of == label]
    vocabulary = len({token for each in TEXTS for token in plain.tokens(each, characters)})
    counts = Counter(
        tuple(tokens[at - n + 1 : at + 1])
        for tokens in read
        for at in range(len(tokens))
        for n in range(1, min(way.order, at + 1) + 1)
    )

    def p(token, context):
        shorter = 1 / (vocabulary + 1) if context is None else p(token, context[1:] if context else None)
        if context is None:
            return shorter
        after = {key[-1]: times for key, times in counts.items() if key[:-1] == context}
        total, types = sum(after.values()), len(after)
        if not total:
            return shorter
        if way.smoothing == "absolute":
            return (max(after.get(token, 0) - 0.75, 0) + 0.75 * types * shorter) / total
        extra = types if way.smoothing == "witten-bell" else alpha * (vocabulary + 1)
        return (after.get(token, 0) + extra * shorter) / (total + extra)

    tokens = plain.tokens(text, characters)
    prior = (LABELS.count(label) + 0.5) / (len(LABELS) + 1)
    return np.log(prior) + sum(
        np.log(p(token, tuple(tokens[max(0, at - way.order + 1) : at]))) for at, token in enumerate(tokens)
    )


@pytest.mark.parametrize("smoothing", ["witten-bell", "absolute", "add"])
@pytest.mark.parametrize(("tokens", "order"), [("words", 1), ("words", 3), ("characters", 4)])
def test_scores_equal_the_equations(tokens, order, smoothing):
    way = _Way(tokens, order, smoothing)
    model = model_of(way, length=0.0)
    for text in ("a b a", "", "c d new a b a c b b a a", "zz"):
        wanted = [plain_score(text, label, way) for label in (0, 1)]
        assert model.logits([text])[0] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("smoothing", ["witten-bell", "absolute", "add"])
def test_probabilities_of_the_next_word_sum_to_one(smoothing):
    model = model_of(_Way("words", 2, smoothing), length=0.0)
    before = model.logits(["a"])[0]
    after = model.logits([f"a {word}" for word in ("a", "b", "c", "d", "new")])
    assert np.exp(after - before).sum(axis=0) == pytest.approx([1.0, 1.0], rel=1e-5)


def test_many_texts_together_equal_one_at_a_time(monkeypatch):
    model = model_of(_Way("words", 2))
    together = model.logits(TEXTS)
    assert np.array_equal(together, np.concatenate([model.logits([text]) for text in TEXTS]))
    monkeypatch.setattr("nextword.models.generative._CHUNK", 2)
    assert np.array_equal(together, model.logits(TEXTS))


def train(file="train.tsv", **sets):
    given = {f"model.{name}": value for name, value in sets.items()}
    return nextword.train(file, task="classify", model="generative", set=given)


@pytest.mark.parametrize("tokens", ["auto", "words", "characters"])
def test_it_learns(files, tokens):
    assert train(tokens=tokens).evaluate("test.tsv").accuracy > 0.9


def test_several_labels_have_a_model_with_and_one_without_each(files):
    run = train("several.tsv", tokens="words", order=1)
    assert run.evaluate("several.tsv").micro_f1 > 0.95
    assert len(run.trained.model.table.priors) == 6


def test_saved_and_loaded_give_the_same_scores(files):
    run = train()
    run.save("run")
    again = nextword.load("run").trained.model
    lines = ["a great story", "", "new words"]
    assert np.array_equal(again.logits(lines), run.trained.model.logits(lines))
    assert again.calibration == run.trained.model.calibration


def test_held_out_texts_are_learned_too_but_scored_before(files):
    rows = [f"word{at}\t{'good' if at % 2 else 'bad'}\n" for at in range(200)]  # each word once
    Path("train.tsv").write_text("".join(rows))
    model = train(tokens="words", order=1).trained.model
    assert model.table.vocabulary == 200
    scores_NK = model.held_out_logits  # nothing was known of their words
    assert len(scores_NK) == 20
    assert np.ptp(scores_NK[:, 0]) == pytest.approx(0, abs=1e-9)


def test_long_evidence_is_calibrated():
    from nextword.models import calibration

    draw = np.random.default_rng(0)
    targets = draw.integers(0, 2, 2000)
    logits = np.where(np.arange(2) == targets[:, None], 1.0, -1.0) + draw.normal(size=(2000, 2))
    assert calibration.fit(300 * logits, targets, False).temperature == pytest.approx(
        300 * calibration.fit(logits, targets, False).temperature, rel=0.02
    )


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("labels.npy", np.full(5, 0, np.int32)),
        ("rows.npy", np.zeros(8, np.int64)),
        ("priors.npy", np.zeros(3)),
        ("starts.npy", np.array([0, 10**6])),
    ],
)
def test_arrays_that_do_not_fit_are_damage(name, array, tmp_path):
    from nextword.store.manifest import read_manifest
    from nextword.store.reading import RunFolder
    from nextword.store.writing import new_run

    with new_run(tmp_path / "part") as folder:
        FAMILY.save(model_of(_Way("words", 2)), folder)
    np.save(tmp_path / "part" / name, array)
    opened = RunFolder(tmp_path / "part", read_manifest(tmp_path / "part"))
    with pytest.raises(DamagedError, match="train the run again"):
        FAMILY.load(opened, GenerativeSettings(), VOCABULARY)
