"""Everything together: real tokenizers, count models, mixtures, text out."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.core.catalog import names
from nextword.core.contracts import START, Block, PackedScorer
from nextword.decode.generate import DecodeSettings, collect, generate
from nextword.evaluation.lm.perplexity import evaluate
from nextword.mixtures.mixture import Mixture, tune_weights

NAMES = names("tokenizer")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", ["greedy", "sample", "beam"])
def test_every_tokenizer_and_way_writes_text_that_continues_the_prompt(trained, name, way):
    model, tokenizer = trained(name)
    prompt = tokenizer.encode("the cat")
    settings = DecodeSettings(decode=way, max_tokens=12, min_tokens=6, seed=4)
    (text,) = collect(generate(model, [prompt], settings, tokenizer))
    whole = tokenizer.decode([*prompt, *text.ids])
    assert whole == "the cat" + text.text
    assert 7 <= len(text.ids) <= 12


@pytest.mark.parametrize("name", NAMES)
def test_a_stop_text_is_found_across_tokens_and_not_shown(trained, name):
    model, tokenizer = trained(name)
    settings = DecodeSettings(max_tokens=200, min_tokens=150, seed=1)
    (free,) = collect(generate(model, [()], settings, tokenizer))
    stop = free.text[8:12]
    (cut,) = collect(generate(model, [()], settings.model_copy(update={"stop": (stop,)}), tokenizer))
    assert cut.reason == "stop"
    assert cut.text == free.text[: free.text.index(stop)]


@pytest.mark.parametrize("name", ["words", "bpe"])
def test_banned_words_are_not_written(trained, name):
    model, tokenizer = trained(name)
    settings = DecodeSettings(max_tokens=150, min_tokens=149, seed=1, ban=("cat", "the"))
    (text,) = collect(generate(model, [()], settings, tokenizer))
    assert not {"cat", "the"} & set(text.text.split())


def test_log_probabilities_of_a_text_are_those_of_scoring_it(trained):
    model, tokenizer = trained()
    prompt = tokenizer.encode("the cat")
    (text,) = collect(generate(model, [prompt], DecodeSettings(seed=3, top_k=3, temperature=0.5), tokenizer))
    ids = np.array([[*prompt, *text.ids]])
    logp, _ = model.score(ids, [ids.shape[1]])
    assert np.allclose(logp[0, len(prompt) :], text.logprobs)


def test_a_tuned_mixture_beats_its_parts_on_the_text_it_was_tuned_on(trained, text_maker):
    parts = [trained(order=order)[0] for order in (1, 2, 3)]
    tokenizer = trained()[1]
    blocks = [Block(text_maker(60, seed=8), True)]
    ids = np.concatenate([piece.ids for piece in tokenizer.encode_blocks(blocks)])
    tuned = tune_weights([part.score_packed(ids)[ids != START] for part in parts])
    mixture = Mixture(parts, tuned.weights)
    assert isinstance(mixture, PackedScorer)
    report = evaluate(mixture, tokenizer, blocks)
    assert report.nll == pytest.approx(-tuned.history[-1])
    assert report.nll <= min(evaluate(part, tokenizer, blocks).nll for part in parts) + 1e-6
    assert report.context == 2


def test_a_mixture_of_score_and_step_agrees_on_real_models(trained):
    mixture = Mixture([trained(order=1)[0], trained(order=3)[0]], [0.4, 0.6])
    ids = np.array([[3, 4, 5, 0, 7, 2]])
    logp, after = mixture.score(ids, [6])
    state, steps = mixture.start(1), []
    row = mixture.next(state)
    for word in ids[0]:
        steps.append(row[0, word])
        row, state = mixture.step([word], state)
    assert np.allclose(logp[0], steps)
    assert np.allclose(mixture.next(after), row)
    assert np.exp(row).sum() == pytest.approx(1.0, abs=1e-6)
