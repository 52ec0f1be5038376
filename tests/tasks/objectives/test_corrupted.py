"""Training with other objectives: what the loss counts, runs that resume exactly, and what they can do."""

import json

import numpy as np
import pytest
import torch
from small_trainings import TEXT, files, finished, killed_after, order

import nextword
from nextword.core import catalog
from nextword.core.errors import ConfigError, DataError
from nextword.data.batches.batch import NOT_COUNTED
from nextword.data.batches.corrupted import Corrupted
from nextword.models.training import NeuralTrainSettings
from nextword.tasks.objectives.corrupted import CorruptedLoss

torch.set_num_threads(1)
OBJECTIVES = {
    "masked": {"model.objective": "masked"},
    "prefix": {"model.objective": "prefix"},
    "span": {"model.objective": "span"},
    "both": {"model.objective": "span", "model.encoder_layers": 1},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "t.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def runs(text, tmp_path_factory):
    """A run of each objective that has learned a little, by name."""
    found = {}

    def trained(name):
        if name not in found:
            out = tmp_path_factory.mktemp("runs") / name
            sets = {"train.steps": 80, "train.length": 0, "model.context": 16, "model.dropout": 0.0}
            found[name] = finished(order(text, "transformer", **OBJECTIVES[name], **sets), out)[0]
        return found[name]

    return trained


@pytest.mark.parametrize("name", OBJECTIVES)
def test_training_with_an_objective_resumes_bit_for_bit(name, text, tmp_path):
    asked = {**OBJECTIVES[name], "train.length": 0, "model.context": 16}
    finished(order(text, "transformer", **asked), tmp_path / "whole")
    killed_after(5, order(text, "transformer", **asked, **{"train.save_every": 5}), tmp_path / "r")
    finished(order(text, "transformer", **asked), tmp_path / "r", resume=True)
    assert files(tmp_path / "whole") == files(tmp_path / "r")


def test_loss_counts_masked_places_alone():
    family = catalog.find("model", "transformer")
    torch.manual_seed(0)
    small = {"layers": 1, "hidden": 16, "heads": 2, "context": 8, "init": "gpt2", "mask_impossible": True}
    network = family.build(family.Settings(objective="masked", **small), 20, True)
    inputs_BT = np.array([[5, 20, 7, 8, 9, 20]])
    targets_BT = np.array([[NOT_COUNTED, 6, NOT_COUNTED, NOT_COUNTED, NOT_COUNTED, 11]])
    batch = Corrupted(inputs_BT, targets_BT, np.array([6]))
    loss, _ = CorruptedLoss(NeuralTrainSettings(precision="fp32"))(network, batch, None)
    logp_NV = network.model().fill(inputs_BT, [6], inputs_BT == 20)
    assert batch.tokens == 2
    assert loss.total.item() == pytest.approx(-(logp_NV[0, 6] + logp_NV[1, 11]).item(), abs=1e-5)


def test_masked_run_fills_a_blank_with_the_word_it_has_learned(runs):
    [found] = nextword.predict(runs("masked"), ["the ___ sat on the mat"])
    [blank] = found.values["blanks"]
    words = [each["text"] for each in blank["candidates"]]
    assert len(words) == 5
    assert {"cat", "dog"} & set(words[:3])
    shares = [each["probability"] for each in blank["candidates"]]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 1 + 1e-6
    assert found.text == f"the {words[0]} sat on the mat"
    assert json.loads(json.dumps(dict(found.values))) == found.values


@pytest.mark.parametrize("mark", ["___", "_____", "[MASK]", "<mask>"])
def test_every_mark_of_a_blank_means_the_same(runs, mark):
    plain, other = nextword.predict(runs("masked"), ["a ___ and a dog", f"a {mark} and a dog"])
    assert plain.values == other.values


@pytest.mark.parametrize("name", ["span", "both"])
def test_run_of_spans_writes_what_a_blank_stands_for(runs, name):
    [found] = nextword.predict(runs(name), ["the cat ___ the mat ___"])
    assert [set(each) for each in found.values["blanks"]] == [{"text", "probability"}] * 2
    assert all(0 < each["probability"] <= 1 for each in found.values["blanks"])
    assert found.text.startswith("the cat ")


def test_text_without_a_blank_is_refused_by_its_number(runs):
    with pytest.raises(DataError, match="line 2 has no blank to fill; write ___"):
        nextword.predict(runs("masked"), ["a ___", "the cat"])


@pytest.mark.parametrize("name", ["masked", "span"])
def test_verbs_from_left_to_right_refuse_in_one_sentence(runs, name):
    run = runs(name)
    for call in (lambda: run.generate("the"), lambda: run.next("the"), lambda: run.score("the cat")):
        with pytest.raises(ConfigError, match="needs a model that reads from left to right"):
            call()


def test_pseudo_likelihood_is_named_so_and_is_the_mean_over_blanks(runs, text):
    report = runs("masked").evaluate(text)
    values = report.to_json()
    assert not [name for name in values if name.endswith("perplexity") and not name.startswith("pseudo")]
    assert values["pseudo_perplexity"] == pytest.approx(np.exp(values["pseudo_nll"]))
    assert values["signature"].startswith("pseudo|")
    assert "pseudo-perplexity" in str(report)
    assert 0 < values["accuracy"] <= 1


def test_score_of_a_line_is_the_sum_of_its_blanks(runs, tmp_path):
    from nextword.api.score import ScoreOptions, whole

    file = tmp_path / "lines.txt"
    file.write_text("the cat sat\na dog\n")
    run = runs("masked")
    found = whole(run, str(file), ScoreOptions(by="token"))
    assert set(found["lines"][0]) >= {"pseudo_logprob", "pseudo_perplexity", "tokens"}
    assert "logprob" not in found["lines"][0]
    ids = np.append(run.tokenizer.encode("the cat sat"), 2)
    expected = 0.0
    for at in range(3):
        blanked = ids.copy()
        blanked[at] = run.model.blank
        logp = run.model.fill(blanked[None], [4], blanked[None] == run.model.blank)
        expected += float(logp[0, ids[at]])
    assert found["lines"][0]["pseudo_logprob"] == pytest.approx(expected, abs=1e-4)
    assert found["pseudo_logprob"] == pytest.approx(sum(line["pseudo_logprob"] for line in found["lines"]))


def test_spans_of_a_text_are_measured_as_such(runs, text):
    values = runs("span").evaluate(text).to_json()
    assert values["span_nll"] > 0
    assert not any("perplexity" in name for name in values)


def test_prefix_run_is_a_language_model_like_any_other(runs, text):
    run = runs("prefix")
    assert run.evaluate(text).perplexity > 1
    assert run.generate("the cat", seed=1)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ({"train.batches": "sentences"}, "'train.batches' is sentences"),
        ({"train.forcing": "free"}, "'train.forcing' is free"),
        ({"train.length": 17}, "'train.length' is 17, but a row of the objective 'masked'"),
    ],
)
def test_settings_of_reading_from_left_to_right_are_refused(text, sets, said):
    asked = order(text, "transformer", **{"model.objective": "masked", "model.context": 16, **sets})
    with pytest.raises(ConfigError, match=said):
        finished(asked, None, keep=False)


def test_states_of_a_masked_run_are_features_of_a_word(runs):
    from nextword.tasks.word_states import Reader

    for name in ("masked", "span", "both"):
        run = runs(name)
        [states_ND] = Reader(run.model, run.tokenizer).states([["the", "cat", "sat"]])
        assert states_ND.shape == (3, 16)
        assert np.isfinite(states_ND).all()
