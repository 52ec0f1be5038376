"""Several classifiers together: their weights, saved and loaded."""

from pathlib import Path

import numpy as np
import pytest
from labelled_texts import labelled_texts, several_labels

import nextword
from nextword.core.errors import ConfigError
from nextword.models.calibration import Calibration, nats
from nextword.models.ensemble import EnsembleClassifier, combined, find_weights, shares


def scores(draw, targets, noise):
    """Return scores that know the labels, with noise."""
    return 2.0 * np.eye(3)[targets] + noise * draw.normal(size=(len(targets), 3))


def test_weights_are_the_most_likely_ones():
    draw = np.random.default_rng(0)
    targets = draw.integers(0, 3, 600)
    members = [scores(draw, targets, noise) for noise in (1.0, 1.5, 3.0)]
    found = find_weights(members, targets, several=False)

    def cost(weights):
        return nats(combined(members, weights), targets, False, Calibration())

    for at in range(3):
        for change in (-0.1, 0.1):
            near = [weight + change * (number == at) for number, weight in enumerate(found)]
            assert cost(near) > cost(found) - 1e-4
    assert cost(found) < min(cost([float(at == number) for number in range(3)]) for at in range(3))


def test_a_member_that_knows_nothing_has_no_weight():
    draw = np.random.default_rng(1)
    targets = draw.integers(0, 3, 600)
    good, noise = find_weights(
        [scores(draw, targets, 1.0), draw.normal(size=(600, 3))], targets, several=False
    )
    assert noise < 0.1 * good


def test_a_network_that_has_learned_nothing_decides_little_whatever_its_weight():
    """Its scores are near 0, so that its weight may be a hundred times that of the others."""
    draw = np.random.default_rng(0)
    targets = draw.integers(0, 3, 600)
    members = [scores(draw, targets, 1.0), scores(draw, targets, 1.5), 1e-3 * draw.normal(size=(600, 3))]
    weights = find_weights(members, targets, several=False)
    assert weights[2] > 50 * sum(weights[:2])
    first, second, nothing = shares(members, weights, several=False)
    assert first > second > 0.2 > 0.1 > nothing
    assert first + second + nothing == pytest.approx(1)


def test_what_all_labels_of_a_text_share_decides_nothing():
    """A language model of each label adds log p(text) to all of its scores."""
    draw = np.random.default_rng(0)
    members = [draw.normal(size=(600, 2)) for _ in range(2)]
    with_text = [members[0], members[1] - draw.uniform(0, 100, (600, 1))]
    weights = (0.5, 0.5)
    assert shares(with_text, weights, several=False) == pytest.approx(shares(members, weights, several=False))
    assert shares(with_text, weights, several=True)[1] > 0.9


@pytest.mark.parametrize("texts", [labelled_texts(200), several_labels(200)])
def test_saved_and_loaded_give_the_same_scores(texts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.tsv").write_text(texts)
    run = nextword.train("train.tsv", task="classify", model="ensemble").trained
    whole = EnsembleClassifier(
        run.vocabulary, [*run.model.members] * 2, (0.75, 0.25) * len(run.model.members)
    )
    object.__setattr__(run, "model", whole)  # more than one member, whatever the held-out texts preferred
    nextword.api.run.Run(run).save("run")
    again = nextword.load("run").trained.model
    lines = ["a great story", "wheat and gold"]
    assert again.weights == whole.weights
    assert np.array_equal(again.logits(lines), whole.logits(lines))


def test_a_network_needs_minutes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.tsv").write_text(labelled_texts(200))
    with pytest.raises(ConfigError, match="the network 'lstm' needs"):
        nextword.train(
            "train.tsv", task="classify", model="ensemble", set={"model.models": ("linear", "lstm")}
        )
    with pytest.raises(ConfigError, match="did you mean 'linear'"):
        nextword.train("train.tsv", task="classify", model="ensemble", set={"model.models": ("linaer",)})


def test_a_network_without_time_is_left_out(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_text(labelled_texts(100))
    models = {"model.models": ["linear", "lstm"]}
    run = nextword.train("a.tsv", task="classify", model="ensemble", set=models, minutes=0.01)
    assert "there is no time to train lstm" in caplog.text
    assert [member.family for member in run.trained.model.members] == ["linear"]
