"""Minimum Bayes risk: the chosen text is the one that agrees most with the texts of the model."""

from __future__ import annotations

import numpy as np
import pytest
from letters import Letters
from table_models import make_table_model

from nextword.core.errors import ConfigError
from nextword.decode.chrf import chrf
from nextword.decode.generate import DecodeSettings, collect, generate

MODEL = make_table_model(size=7, seed=3)


def texts_of(prompts=((),), **asked):
    return collect(generate(MODEL, prompts, DecodeSettings(max_tokens=9, seed=5, **asked), Letters()))


def test_chosen_text_has_the_largest_expected_chrf_among_the_samples():
    samples = texts_of(samples=20, min_tokens=3)
    shown = [text.text for text in samples]
    gain = chrf(shown, shown).mean(axis=1)
    (found,) = texts_of(decode="mbr", candidates=20, min_tokens=3)
    assert found.text == shown[int(np.argmax(gain))]
    assert found.score == pytest.approx(gain.max())
    assert found.ids == samples[int(np.argmax(gain))].ids


def test_candidates_of_a_beam_count_by_their_probability():
    best = texts_of(decode="beam", beam_size=8, n_best=8)
    weights = np.exp([text.logprob for text in best])
    gain = chrf([text.text for text in best], [text.text for text in best]) @ (weights / weights.sum())
    (found,) = texts_of(decode="mbr", candidates=8, candidates_from="beam")
    assert found.text == best[int(np.argmax(gain))].text


def test_n_best_are_different_texts_in_order():
    found = texts_of(decode="mbr", candidates=30, n_best=4)
    assert len({text.text for text in found}) == 4
    assert [text.score for text in found] == sorted((text.score for text in found), reverse=True)


@pytest.mark.parametrize("way", ["sample", "beam"])
def test_choice_does_not_depend_on_the_batch(way):
    prompts = [[3], [], [4, 5], [6]]
    asked = {"decode": "mbr", "candidates": 6, "candidates_from": way, "n_best": 2, "no_repeat": 2}
    together = texts_of(prompts, batch=64, **asked)
    assert texts_of(prompts, batch=1, **asked) == together
    assert texts_of(prompts, batch=13, **asked) == together


def test_texts_cannot_be_compared_without_a_tokenizer():
    with pytest.raises(ConfigError, match="mbr"):
        collect(generate(MODEL, settings=DecodeSettings(decode="mbr")))


def test_more_texts_than_candidates_are_refused():
    with pytest.raises(ValueError, match="candidates"):
        DecodeSettings(decode="mbr", candidates=2, n_best=3)


def test_network_tensors_are_repeated_for_every_candidate():
    torch = pytest.importorskip("torch")
    from nextword.core import catalog
    from nextword.models.network import NeuralLanguageModel

    torch.manual_seed(0)
    made = catalog.find("model", "lstm")
    model = NeuralLanguageModel(made.build(made.Settings(hidden=8), 12, True))
    asked = DecodeSettings(decode="mbr", candidates=5, max_tokens=6, seed=1)
    found = collect(generate(model, [[4], [5]], asked, Letters()))
    assert [text.row for text in found] == [0, 1]
