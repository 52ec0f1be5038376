"""N-best lists: reordered, and tuned for the fewest word errors."""

from __future__ import annotations

import json

import numpy as np
import pytest
from nbest_lists import KALDI, lines

from nextword.core.contracts import Block
from nextword.core.errors import ConfigError, DataError
from nextword.evaluation.lines.error_rate import word_errors
from nextword.evaluation.lines.nbest import read_nbest
from nextword.evaluation.lines.rescore import features_of, model_scores, ranked, rescore, tune
from nextword.evaluation.lines.scores import score_lines


def test_the_model_scores_each_text_whole(trained):
    model, tokenizer = trained()
    nbest = read_nbest(lines(KALDI))
    alone = [list(score_lines(model, tokenizer, [Block(text.encode(), True)])) for text in nbest.texts]
    assert np.allclose(model_scores(model, tokenizer, nbest), [line.logprob for (line,) in alone])


def test_lists_come_out_best_first_by_the_weighted_sum(trained):
    model, tokenizer = trained()
    nbest = read_nbest(lines(KALDI))
    done = rescore(model, tokenizer, nbest, [1.0, 2.0, 0.5])
    expected = nbest.scores[:, 0] + 2 * done.lm + 0.5 * np.array([3, 3, 2, 3])
    assert np.allclose(done.combined, expected)
    found = [line.split(" ")[0] for line in done.lines()]
    assert sorted(found[:2]) == ["utt-a-1", "utt-a-2"]
    assert found == [nbest.ids[i] for i in done.order]
    for group in (done.combined[done.order][:2], done.combined[done.order][2:]):
        assert group[0] >= group[1]


def test_only_the_models_weight_reorders_where_it_is_large(trained):
    model, tokenizer = trained()
    done = rescore(model, tokenizer, read_nbest(lines(KALDI)), [0.0, 1.0])
    assert np.array_equal(done.order, ranked(done.nbest, done.lm))


def test_jsonl_keeps_its_fields(trained):
    data = b'{"id": "a", "score": [1, 2], "text": "the cat", "more": {"x": 1}}\n'
    done = rescore(*trained(), read_nbest(lines(data)))
    (line,) = done.lines()
    values = json.loads(line)
    assert values["more"] == {"x": 1}
    assert values["lm"] == pytest.approx(done.lm[0])
    assert values["combined"] == pytest.approx(done.combined[0])


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf"])
def test_weights_that_are_not_finite_are_named(trained, bad):
    with pytest.raises(ConfigError, match=f"'--weights' has {bad}, which is not a finite number"):
        rescore(*trained(), read_nbest(lines(KALDI)), [1.0, float(bad)])


@pytest.mark.parametrize("weights", [[1.0], [1.0, 2.0, 3.0, 4.0]])
def test_wrong_weights_say_how_many_are_needed(trained, weights):
    with pytest.raises(ConfigError, match="3 are needed"):
        rescore(*trained(), read_nbest(lines(KALDI)), weights)


def synthetic(cost: bool):
    """Lists whose right text is the one a hidden weighting of score and model prefers."""
    rng = np.random.default_rng(0)
    rows, references, lm = [], {}, []
    for u in range(60):
        given, model = rng.normal(size=8), rng.normal(size=8) * 3
        best = int(np.argmax(given + 0.7 * model))
        for k in range(8):
            text = "right words" if k == best else " ".join(["wrong"] * int(rng.integers(1, 4)))
            rows.append(f"u{u}-{k + 1} {(-1 if cost else 1) * given[k]} {text}".encode())
            lm.append(model[k])
        references[f"u{u}"] = "right words"
    return read_nbest(rows), np.array(lm), references


@pytest.mark.parametrize("cost", [False, True])
def test_tuning_finds_the_hidden_weights_even_where_scores_are_costs(cost):
    nbest, lm, references = synthetic(cost)
    tuned = tune(nbest, features_of(nbest, lm), references, [1.0, 0.0, 0.0])
    assert tuned.after <= 0.03 < tuned.before
    assert tuned.best == 0
    assert tuned.utterances == 60
    assert tuned.weights[1] / abs(tuned.weights[0]) == pytest.approx(0.7, abs=0.15)


def test_tuned_weights_are_never_worse_than_those_given():
    nbest, lm, references = synthetic(False)
    rng = np.random.default_rng(1)
    for _ in range(5):
        start = [1.0, *rng.normal(size=2)]
        tuned = tune(nbest, features_of(nbest, lm), references, start)
        first = ranked(nbest, features_of(nbest, lm) @ np.array(start))[nbest.starts]
        wrong = sum(int(word_errors("right words", [nbest.texts[i]])[0]) for i in first)
        assert tuned.after <= wrong / 120 + 1e-12


def test_references_with_other_ids_are_refused_with_an_example(trained):
    with pytest.raises(DataError, match="begins with 'utt-a'"):
        rescore(*trained(), read_nbest(lines(KALDI)), references={"zzz": "the cat"})


def test_rescoring_with_references_uses_the_tuned_weights(trained):
    references = {"utt-a": "the cat sat", "utt-b": "on the mat"}
    done = rescore(*trained(), read_nbest(lines(KALDI)), references=references)
    assert done.tuned is not None
    assert done.weights == done.tuned.weights
    assert done.tuned.after <= done.tuned.before


def test_a_text_of_probability_zero_comes_last(trained):
    data = b"a-1 1 zebra zebra\na-2 1 the cat\n"
    done = rescore(*trained(smoothing="mle"), read_nbest(lines(data)))
    assert np.isneginf(done.lm[0])
    assert done.order.tolist() == [1, 0]
    assert "inf" not in "".join(done.lines())
