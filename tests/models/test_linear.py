"""Linear classifiers of hashed n-grams."""

from pathlib import Path

import numpy as np
import pytest
from labelled_texts import labelled_texts, several_labels

import nextword
from nextword.core.errors import ConfigError, DamagedError
from nextword.models import linear
from nextword.models.selection import Examples
from nextword.text.hashing import buckets, features


@pytest.fixture(autouse=True)
def texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.tsv").write_text(labelled_texts(200))
    Path("test.tsv").write_text(labelled_texts(30, seed=1))
    Path("several.tsv").write_text(several_labels(200))
    return "train.tsv"


def train(file="train.tsv", seed=0, **sets):
    given = {f"model.{name}": value for name, value in sets.items()}
    return nextword.train(file, task="classify", model="linear", set=given, seed=seed)


@pytest.mark.parametrize("dimension", [0, 8])
@pytest.mark.parametrize("max_n", [0, 4])
def test_weights_and_vectors_learn(dimension, max_n):
    assert train(dimension=dimension, max_n=max_n).evaluate("test.tsv").accuracy > 0.9


@pytest.mark.parametrize("scaling", ["none", "bayes", "idf"])
def test_each_scaling_learns(scaling):
    assert train(scaling=scaling, max_n=0).evaluate("test.tsv").accuracy > 0.9


def test_rare_features_move_more_by_idf_and_as_much_in_the_mean():
    texts = ["a b", "a c", "a d", "a"]
    every = Examples(texts, np.array([0, 1, 0, 1]), np.arange(5), count=2, several=False)
    made = buckets(features(texts, 1, 2, 0), 1 << 10)
    first_FK, steps_FK = linear._first_weights(made, every, 1 << 10, "idf")
    assert not first_FK.any()
    common, rare = steps_FK[made.values[-1]], steps_FK[np.setdiff1d(made.values, made.values[-1])]
    ratio = ((1 + np.log(5 / 2)) / (1 + np.log(5 / 5))) ** 2
    np.testing.assert_allclose(rare / common, ratio, rtol=1e-5)
    assert steps_FK[made.values].mean() == pytest.approx(1.0)


def test_forty_labels_of_few_long_texts_have_weights_of_their_own():
    draw = np.random.default_rng(0)
    rows = []
    for at in range(40 * 12):
        words = [f"common{n}" for n in draw.integers(200, size=50)] + [f"own{at % 40} {n}" for n in range(8)]
        rows.append(f"{' '.join(draw.permutation(words))}\tlabel{at % 40}\n")
    Path("forty.tsv").write_text("".join(rows[:360]))
    Path("others.tsv").write_text("".join(rows[360:]))
    run = train("forty.tsv")
    assert run.trained.model.weights_KD is None
    assert run.evaluate("others.tsv").accuracy > 0.9


def test_many_texts_together_equal_one_at_a_time(monkeypatch):
    model = train().trained.model
    lines = ["a great story", "", "an awful, awful film", "no such words", "स्ते 你好"]
    together = model.logits(lines)
    assert np.array_equal(together, np.concatenate([model.logits([line]) for line in lines]))
    monkeypatch.setattr("nextword.models.linear._CHUNK", 2)
    assert np.array_equal(together, model.logits(lines))


def test_a_seed_gives_the_same_weights_each_time():
    one, two, other = (train(seed=seed, dimension=4, max_n=0).trained.model for seed in (0, 0, 1))
    assert np.array_equal(one.rows_FD, two.rows_FD)
    assert not np.array_equal(one.rows_FD, other.rows_FD)


@pytest.mark.parametrize("dimension", [0, 4])
@pytest.mark.parametrize("file", ["train.tsv", "several.tsv"])
def test_saved_and_loaded_give_the_same_scores(file, dimension):
    run = train(file, dimension=dimension)
    run.save("run")
    again = nextword.load("run").trained.model
    lines = ["a great story", "wheat and gold"]
    assert np.array_equal(again.logits(lines), run.trained.model.logits(lines))
    assert again.calibration == run.trained.model.calibration


def test_several_labels_are_questions_of_their_own():
    run = train("several.tsv")
    assert run.evaluate("several.tsv").micro_f1 > 0.95
    assert len(run.trained.model.calibration.thresholds) == 3


def test_naive_bayes_weights_are_the_log_count_ratios():
    from nextword.models.linear import _first_weights
    from nextword.models.selection import Examples
    from nextword.text.hashing import Hashes

    examples = Examples(["a", "a b", "b"], np.array([0, 0, 1]), np.arange(4), 2, False)
    made = Hashes(np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 3, 4]))
    first_FK, steps_FK = _first_weights(made, examples, 2, "bayes")
    ratio = np.log(
        (3 / 5) / (1 / 3)
    )  # feature 0: twice with label 0, never with label 1; each count plus one
    assert first_FK[0] == pytest.approx([ratio / 2, -ratio / 2])
    assert steps_FK[0] == pytest.approx([ratio**2] * 2)


def test_the_gradient_is_that_of_the_loss():
    from nextword.models.linear_kernels import learn_weights

    draw = np.random.default_rng(0)
    weights = draw.normal(size=(3, 2)).astype(np.float32)
    moved, bias = weights.copy(), np.zeros(2, np.float32)
    ids, bounds, rate = np.array([0, 2], np.int32), np.array([0, 2]), 1e-3
    data = (ids, bounds, np.array([1]), np.array([0, 1]), np.array([0]))
    learn_weights(*data, moved, np.zeros((0, 0), np.float32), bias, (rate, rate), False)

    def loss(table):
        z = table[[0, 2]].sum(axis=0) / np.sqrt(2)
        return np.log(np.exp(z).sum()) - z[1]

    wide = weights.astype(np.float64)
    for place in np.ndindex(3, 2):
        near = wide.copy()
        near[place] += 1e-6
        slope = (loss(near) - loss(wide)) / 1e-6
        assert (moved - weights)[place] == pytest.approx(-rate * slope, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("features.npy", np.zeros((3, 2), np.float32)),
        ("bias.npy", np.zeros(2, np.float64)),
        ("bias.npy", np.full(2, np.nan, np.float32)),
        ("bias.npy", np.zeros(3, np.float32)),
    ],
)
def test_arrays_that_do_not_fit_are_damage(name, array):
    from nextword.models.linear import FAMILY
    from nextword.store.manifest import read_manifest
    from nextword.store.reading import RunFolder
    from nextword.store.writing import new_run

    run = train().trained
    with new_run("part") as folder:
        FAMILY.save(run.model, folder)
    np.save(Path("part", name), array)
    opened = RunFolder(Path("part"), read_manifest(Path("part")))
    with pytest.raises(DamagedError, match="train the run again"):
        FAMILY.load(opened, run.settings.model, run.vocabulary)


def test_settings_that_leave_no_features_are_refused():
    with pytest.raises(ConfigError, match="no features"):
        train(word_ngrams=0, max_n=0)
    with pytest.raises(ConfigError, match="power of two"):
        train(buckets=1000)
