"""Which words mattered: exact for sums over words, complete, and for any classifier."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from nextword.core.errors import ConfigError, DataError
from nextword.models.calibration import Calibration
from nextword.models.network import device_of
from nextword.probe.importance import Importance, explain, gradient_times_input, has_vectors, log_odds
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject
from nextword.text.splitter import split

WEIGHTS = {"good": (2.0, -1.0), "bad": (-1.5, 0.5), "film": (0.1, 0.2), "北": (0.0, 3.0), "अच्छा": (1.0, 0.0)}
BIAS = np.array([0.3, -0.2])


class BagOfWords:
    """A linear classifier: the scores of the words are added up."""

    def __init__(self, several=False, temperature=1.0, labels=("yes", "no")):
        self.calibration = Calibration(temperature)
        self.vocabulary = SimpleNamespace(labels=labels, several=several, longest=400)

    def logits(self, texts):
        return np.array(
            [BIAS + sum((np.array(WEIGHTS.get(w, (0, 0))) for w in split(t)), np.zeros(2)) for t in texts]
        )


@pytest.mark.parametrize("text", ["a good, bad film", "good good film", "北 अच्छा good", "don't film"])
def test_occlusion_of_a_bag_of_words_is_exact_and_complete(text):
    model = BagOfWords()
    found = explain(model, text, "yes")
    for word, score in zip(found.words, found.scores_W, strict=True):
        own = WEIGHTS.get(word.text, (0.0, 0.0))
        assert score == pytest.approx(own[0] - own[1])
    whole, nothing = log_odds(model.logits([text, ""]), 0, several=False)
    assert found.scores_W.sum() == pytest.approx(whole - nothing)


def test_the_other_label_has_the_opposite_scores():
    yes, no = (explain(BagOfWords(), "a good film", label).scores_W for label in ("yes", "no"))
    assert np.allclose(yes, -no)


def test_several_labels_are_questions_of_their_own():
    found = explain(BagOfWords(several=True), "good film", "no")
    assert found.scores_W.tolist() == pytest.approx([-1.0, 0.2])


def test_scores_are_in_the_unit_of_the_calibrated_answer():
    found = explain(BagOfWords(temperature=2.0), "good")
    assert found.label == "yes"
    assert found.scores_W.tolist() == pytest.approx([1.5])


def test_unknown_label_and_method_are_refused():
    with pytest.raises(ConfigError, match="there is no label 'maybe'; the classifier knows: yes, no"):
        explain(BagOfWords(), "good", "maybe")
    with pytest.raises(ConfigError, match="it must be occlusion or gradient"):
        explain(BagOfWords(), "good", method="magic")
    assert not has_vectors(BagOfWords())


class Linear(torch.nn.Module):
    """Vectors of words in, their sum times a matrix out: gradient x input is exact here."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.matrix = torch.nn.Parameter(torch.randn(4, 2))

    def words(self, given):
        return given.x_1TE

    def from_vectors(self, x_BTE, lengths_B):
        return (x_BTE @ self.matrix).sum(1)


def test_gradient_times_input_of_a_linear_network_is_exact_and_complete():
    network = Linear()
    given = SimpleNamespace(x_1TE=torch.randn(1, 5, 4), lengths_B=torch.tensor([5]))
    found = gradient_times_input(network, given, 1, several=False)
    expected = (given.x_1TE[0] @ (network.matrix[:, 1] - network.matrix[:, 0])).detach().numpy()
    assert np.allclose(found, expected, atol=1e-5)
    assert device_of(network).type == "cpu"


def test_the_probe_names_the_words_that_mattered():
    subject = Subject("run", BagOfWords(), None, "a good film, not bad")
    probe = Importance()
    assert probe.fits(subject)
    found = probe.look(subject, ProbeSettings())
    assert "run says yes" in found.sentence
    assert "'good' (+3.00)" in found.sentence
    assert found.to_json()["names"]["words"] == ["a", "good", "film", ",", "not", "bad"]
    assert "bad: -2 change of the log-odds" in found.page().html()
    with pytest.raises(DataError, match="give it with --text"):
        probe.look(Subject("run", BagOfWords(), None, None), ProbeSettings())
