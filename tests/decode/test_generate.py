"""The loop: greedy, sample and beam on one contract, with any batch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from letters import Letters
from table_models import make_table_model

from nextword.core.contracts import END, START
from nextword.core.errors import ConfigError
from nextword.decode.generate import DecodeSettings, collect, generate
from nextword.decode.text import TextStream


def run(model, prompts=((),), tokenizer=None, **settings):
    settings = {"unknown": True, **settings}
    return collect(generate(model, prompts, DecodeSettings(**settings), tokenizer))


def all_texts(model, longest):
    """Every text of at most so many words with its log-probability: END ends it, or its length does."""
    found = {}
    words = [word for word in range(model.vocab_size) if word not in (START, END)]
    for length in range(1, longest + 1):
        for ids in itertools.product(words, repeat=length - 1):
            for last in [END, *(words if length == longest else [])]:
                text = (*ids, last)
                found[text] = sum(model.logp_VV[a, b] for a, b in zip((START, *text[:-1]), text, strict=True))
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("seed", range(5))
def test_a_beam_as_wide_as_the_tree_finds_what_exhaustive_search_finds(alpha, seed):
    model = make_table_model(size=5, seed=seed)  # 4 words can come: START cannot
    found = run(model, decode="beam", beam_size=300, n_best=20, max_tokens=4, length_penalty=alpha)
    scored = {ids: logp / ((5 + len(ids)) / 6) ** alpha for ids, logp in all_texts(model, 4).items()}
    best = sorted(scored, key=lambda ids: -scored[ids])[:20]
    assert [text.ids for text in found] == best
    assert found[0].logprob == pytest.approx(all_texts(model, 4)[best[0]])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_greedy_is_a_beam_of_one(seed, alpha):
    model = make_table_model(size=9, seed=seed, sharp=3)
    greedy = run(model, [[3], []], decode="greedy", max_tokens=12)
    beam = run(model, [[3], []], decode="beam", beam_size=1, max_tokens=12, length_penalty=alpha)
    assert [(text.ids, text.reason) for text in greedy] == [(text.ids, text.reason) for text in beam]
    assert np.allclose([text.logprob for text in greedy], [text.logprob for text in beam])


@pytest.mark.parametrize("seed", range(10))
def test_a_wider_beam_is_never_worse_than_greedy_without_length_penalty(seed):
    model = make_table_model(size=9, seed=seed, sharp=3)
    greedy = run(model, decode="greedy", max_tokens=6)[0]
    beam = run(model, decode="beam", beam_size=50, max_tokens=6, length_penalty=0)[0]
    assert beam.logprob >= greedy.logprob - 1e-12


def test_greedy_takes_the_peak_of_each_step():
    model = make_table_model(size=6, seed=3)
    text = run(model, decode="greedy", max_tokens=5)[0]
    last = START
    for word, logprob in zip(text.ids, text.logprobs, strict=True):
        assert word == np.argmax(model.logp_VV[last])
        assert logprob == model.logp_VV[last, word]
        last = word


def test_samples_follow_the_model_by_chi_square():
    model = make_table_model(size=12, seed=4)
    texts = run(model, [[5]], samples=20_000, max_tokens=1, seed=1, batch=4096)
    counts = np.bincount([text.ids[0] for text in texts], minlength=12)
    expected = np.exp(model.logp_VV[5]) * len(texts)
    possible = expected > 0
    assert ((counts - expected)[possible] ** 2 / expected[possible]).sum() < 29.6  # 10 degrees, p = 0.001
    assert counts[START] == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"decode": "sample", "samples": 7, "top_p": 0.9, "temperature": 0.8},
        {"decode": "beam", "n_best": 3},
        {"decode": "greedy"},
    ],
)
def test_results_do_not_depend_on_the_batch(settings):
    model = make_table_model(size=9, seed=5)
    prompts = [[3], [], [4, 5, 6]]
    together = run(model, prompts, seed=11, max_tokens=20, batch=64, **settings)
    for batch in (1, 2, 5):
        assert run(model, prompts, seed=11, max_tokens=20, batch=batch, **settings) == together


def test_the_first_samples_are_the_same_however_many_are_asked_for():
    model = make_table_model(size=9, seed=5)
    assert run(model, samples=9, seed=3)[:4] == run(model, samples=4, seed=3)


def test_a_seed_repeats_and_another_differs():
    model = make_table_model(size=9, seed=6)
    first = run(model, samples=5, seed=1)
    assert first == run(model, samples=5, seed=1)
    assert first != run(model, samples=5, seed=2)


@pytest.mark.parametrize("decode", ["greedy", "sample", "beam"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_repeat_really_holds(decode, size):
    model = make_table_model(size=8, seed=7, sharp=4)
    for text in run(model, [[3, 4, 3]], decode=decode, no_repeat=size, max_tokens=40, seed=1):
        ids = [3, 4, 3, *text.ids]
        grams = [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]
        new = grams[3 - size + 1 :]
        assert len(set(new)) == len(new)
        assert not set(new) & set(grams[: 3 - size + 1])


@pytest.mark.parametrize("decode", ["greedy", "sample", "beam"])
def test_end_length_and_min_tokens_are_kept(decode):
    model = make_table_model(size=6, seed=8)
    for text in run(model, decode=decode, min_tokens=5, max_tokens=9, seed=2):
        assert 6 <= len(text.ids) <= 9
        assert text.reason == ("end" if text.ids[-1] == END else "length")
        assert END not in text.ids[:-1]


@pytest.mark.parametrize("decode", ["greedy", "sample", "beam"])
def test_stop_text_ends_the_row_and_is_not_shown(decode):
    model = make_table_model(size=6, seed=9)
    settings = {"decode": decode, "max_tokens": 200, "min_tokens": 150, "unknown": False, "seed": 5}
    free = run(model, tokenizer=Letters(), **settings)[0]
    stop = free.text[3:5]
    stopped = run(model, tokenizer=Letters(), stop=(stop,), **settings)[0]
    assert stopped.reason == "stop"
    assert stop not in stopped.text
    assert len(stopped.ids) < 150
    if decode != "beam":
        assert stopped.text == free.text[: free.text.index(stop)]


def test_banned_words_never_come():
    model = make_table_model(size=6, seed=9)
    settings = {"max_tokens": 300, "min_tokens": 299, "unknown": False, "seed": 1}
    text = run(model, tokenizer=Letters(), ban=("a", "bc"), **settings)[0]
    assert "a" not in text.text
    assert "bc" not in text.text
    assert len(text.text) >= 299


def test_tokens_come_one_by_one_with_their_text():
    tokens = generate(make_table_model(size=6), [[3]], DecodeSettings(seed=1, max_tokens=3), Letters())
    first = next(iter(tokens))
    assert first.row == 0
    assert first.text == Letters().decode([first.id])


def test_the_prompt_is_read():
    model = make_table_model(size=6, seed=1)
    texts = run(model, [[3], [4], []], decode="greedy", max_tokens=1)
    assert [text.ids[0] for text in texts] == [int(np.argmax(model.logp_VV[last])) for last in (3, 4, START)]


def test_an_unknown_way_to_decode_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="greedy"):
        run(make_table_model(), decode="gredy")


def test_no_prompts_give_no_tokens():
    assert run(make_table_model(), []) == []


def test_text_stream_holds_back_what_may_become_a_stop_text():
    stream = TextStream(Letters(), stop=("abc",))
    shown = [stream.push(i) for i in Letters().encode("xababd")]
    assert shown == ["x", "", "", "ab", "", "abd"]
    assert stream.push(3) + stream.push(4) + stream.flush() == "ab"
    stream = TextStream(Letters(), stop=("abc",))
    assert "".join(stream.push(i) for i in Letters().encode("xabcx")) + stream.flush() == "x"
    assert stream.stopped


class Sourced:
    """A decoder that has read a source: every row starts from its own word."""

    def __init__(self, model):
        self.model, self.vocab_size = model, model.vocab_size
        self.next, self.step, self.score, self.reorder = model.next, model.step, model.score, model.reorder
        self.rows, self.join = model.rows, model.join

    def start(self, batch, source=None, begin=True):
        return np.asarray(source)


@pytest.mark.parametrize("batch", [1, 2, 64])
@pytest.mark.parametrize("prompts", [[[], [], []], [[3], [], [4, 5]]])
def test_every_prompt_keeps_its_own_source_in_any_batch(batch, prompts):
    model = make_table_model(size=7, seed=3)
    settings = DecodeSettings(decode="greedy", max_tokens=1, unknown=True, batch=batch)
    texts = collect(generate(Sourced(model), prompts, settings, source=[5, 6, 4]))
    last = [prompt[-1] if prompt else word for prompt, word in zip(prompts, [5, 6, 4], strict=True)]
    assert [text.ids[0] for text in texts] == [int(np.argmax(model.logp_VV[word])) for word in last]
