"""Beam search in whole arrays: equal to its plain twin, to exhaustive search, and to itself in any batch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letters import Letters
from plain_beam import PlainBeam
from table_models import TableModel, make_table_model

from nextword.core import catalog
from nextword.core.contracts import END, START, Source
from nextword.core.errors import ConfigError
from nextword.decode import generate as loop
from nextword.decode.generate import DecodeSettings, collect, generate


def beam(model, prompts=((),), source=None, tokenizer=None, **asked):
    asked = {"unknown": True, "decode": "beam", **asked}
    return collect(generate(model, prompts, DecodeSettings(**asked), tokenizer, source))


def plain(model, prompts=((),), **asked):
    """Search with the plain twin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "find", lambda slot, name: PlainBeam)
        return beam(model, prompts, **asked)


def flattened(texts):
    return [(text.row, text.ids, text.reason) for text in texts]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    size=st.integers(4, 40),
    width=st.integers(1, 12),
    alpha=st.sampled_from([0.0, 0.6, 2.0]),
    patience=st.sampled_from([0.5, 1.0, 3.0]),
    asked=st.fixed_dictionaries(
        {}, optional={"no_repeat": st.just(2), "min_tokens": st.just(4), "repetition_penalty": st.just(1.5)}
    ),
    prompts=st.lists(st.lists(st.integers(3, 3), max_size=3), min_size=1, max_size=6),
    data=st.data(),
)
def test_whole_arrays_find_what_the_plain_twin_finds(
    seed, size, width, alpha, patience, asked, prompts, data
):
    model = make_table_model(size=size, seed=seed, sharp=2)
    asked |= {"beam_size": width, "n_best": data.draw(st.integers(1, width)), "max_tokens": 9}
    asked |= {"length_penalty": alpha, "patience": patience, "batch": data.draw(st.sampled_from([1, 64]))}
    found, expected = beam(model, prompts, **asked), plain(model, prompts, **asked)
    assert flattened(found) == flattened(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs)
        assert one.score == pytest.approx(other.score)


def all_texts(model, longest):
    """Every text of at most this many tokens with the log-probabilities of its tokens."""
    words = [word for word in range(model.vocab_size) if word not in (START, END)]
    for length in range(1, longest + 1):
        for ids in itertools.product(words, repeat=length - 1):
            for last in [END, *(words if length == longest else [])]:
                text = (*ids, last)
                yield text, [model.logp_VV[a, b] for a, b in zip((START, *text[:-1]), text, strict=True)]


class Attending(TableModel):
    """A table whose rows look at their source, the last token decides where; a state also has the length."""

    def __init__(self, table_VV, looks_VS):
        super().__init__(table_VV)
        self.looks_VS = looks_VS

    def start(self, batch, source=None, begin=True):
        return np.stack([np.full(batch, START), np.asarray(source.lengths_B)], axis=1)

    def next(self, state):
        return self.logp_VV[state[:, 0]]

    def step(self, ids_B, state):
        state = np.stack([np.asarray(ids_B), state[:, 1]], axis=1)
        return self.next(state), state

    def attention(self, state):
        S = int(state[:, 1].max())
        weights_BS = np.where(np.arange(S) < state[:, 1:], self.looks_VS[state[:, 0], :S], 0.0)
        return weights_BS / weights_BS.sum(axis=1, keepdims=True)


def attending(size=5, seed=0, longest=4):
    random = np.random.default_rng(seed)
    return Attending(
        np.exp(make_table_model(size, seed).logp_VV), random.gamma(0.5, size=(size, longest)) + 1e-3
    )


def sources(lengths):
    return Source(np.zeros((len(lengths), max(lengths)), dtype=np.int64), np.array(lengths))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("beta", [0.2, 2.0])
def test_wide_beam_with_coverage_penalty_finds_what_exhaustive_search_finds(seed, beta):
    model, length = attending(seed=seed), 3
    found = beam(
        model, source=sources([length]), beam_size=400, n_best=10, max_tokens=4,
        coverage_penalty=beta, patience=1000,
    )  # fmt: skip
    scored = {}
    for ids, logps in all_texts(model, 4):
        state = np.array([[word, length] for word in (START, *ids[:-1])])
        cover_S = model.attention(state).sum(axis=0)
        penalty = beta * np.log(np.minimum(cover_S, 1)).sum()
        scored[ids] = sum(logps) / ((5 + len(ids)) / 6) ** 0.6 + penalty
    best = sorted(scored, key=lambda ids: -scored[ids])[:10]
    assert [text.ids for text in found] == best
    assert [text.score for text in found] == pytest.approx([scored[ids] for ids in best])


def test_coverage_penalty_does_not_depend_on_neighbours_with_longer_sources():
    model = attending(size=8, seed=1, longest=9)
    lengths = [2, 9, 5, 1]
    asked = {"coverage_penalty": 1.0, "n_best": 3, "max_tokens": 12}
    together = beam(model, [()] * 4, source=sources(lengths), **asked)
    for place, length in enumerate(lengths):
        alone = beam(model, source=sources([length]), **asked)
        own = [text for text in together if text.row // 3 == place]
        assert [text.ids for text in alone] == [text.ids for text in own]
        assert [text.score for text in alone] == pytest.approx([text.score for text in own])


def test_coverage_penalty_needs_a_model_that_attends():
    with pytest.raises(ConfigError, match="coverage_penalty"):
        beam(make_table_model(), coverage_penalty=1.0)


def test_length_is_bounded_by_the_source():
    model = attending(size=6, seed=2, longest=8)
    texts = beam(model, [()] * 2, source=sources([1, 8]), max_ratio=1.5, min_ratio=1.5, max_tokens=50)
    assert 1 < len(texts[0].ids) <= 12  # 1.5 for each token, and 10 more
    assert 12 < len(texts[1].ids) <= 22


@pytest.mark.parametrize("seed", range(5))
def test_bound_that_ends_a_search_loses_nothing(seed):
    model = make_table_model(size=6, seed=seed)
    asked = {"beam_size": 6, "n_best": 2, "max_tokens": 8, "patience": 1000}
    found = beam(model, **asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nextword.decode.trail.Pool.worst", -np.inf)  # so that nothing is ever beaten
        assert beam(model, **asked) == found


def test_more_patience_never_finds_a_worse_text():
    for seed in range(10):
        model = make_table_model(size=12, seed=seed, sharp=2)
        scores = [
            beam(model, beam_size=3, max_tokens=15, patience=patience)[0].score for patience in (0.4, 1, 4)
        ]
        assert scores == sorted(scores)


def test_groups_of_one_hypothesis_begin_differently():
    model = make_table_model(size=20, seed=3, sharp=2)
    texts = beam(model, beam_size=4, groups=4, diversity=100.0, n_best=4, max_tokens=6)
    assert len({text.ids[0] for text in texts}) == 4
    alike = beam(model, beam_size=4, groups=4, diversity=0.0, n_best=4, max_tokens=6)
    assert len({text.ids for text in alike}) == 1
    greedy = collect(generate(model, settings=DecodeSettings(decode="greedy", max_tokens=6, unknown=True)))
    assert alike[0].ids == greedy[0].ids


@pytest.mark.parametrize("strength", [0.3, 1.0])
def test_groups_are_the_beams_of_the_paper(strength):
    """Vijayakumar et al. 2016, algorithm 1, with one hypothesis a group and fixed length."""
    model = make_table_model(size=9, seed=5)
    allowed_VV = model.logp_VV.copy()
    allowed_VV[:, END] = -np.inf
    groups: list[list[int]] = [[] for _ in range(3)]
    for _ in range(5):
        used = np.zeros(9)
        for group in groups:
            group.append(int(np.argmax(allowed_VV[group[-1] if group else START] - strength * used)))
            used[group[-1]] += 1
    texts = beam(
        model, beam_size=3, groups=3, diversity=strength, n_best=3, max_tokens=5, min_tokens=5
    )  # fmt: skip
    assert sorted(text.ids for text in texts) == sorted(map(tuple, groups))


def test_texts_of_groups_do_not_depend_on_the_batch():
    model = make_table_model(size=30, seed=6)
    asked = {"beam_size": 6, "groups": 3, "n_best": 6, "max_tokens": 12}
    prompts = [[3], [], [4, 5], [7], [9]]
    assert beam(model, prompts, batch=1, **asked) == beam(model, prompts, batch=64, **asked)


def test_token_scores_are_the_models_and_sum_to_the_text():
    model = make_table_model(size=9, seed=7)
    for text in beam(model, [[4]], n_best=4, max_tokens=6, length_penalty=0):
        own = [model.logp_VV[a, b] for a, b in zip((4, *text.ids[:-1]), text.ids, strict=True)]
        assert text.logprobs == pytest.approx(own)
        assert text.score == pytest.approx(text.logprob)


@pytest.mark.parametrize("decode", ["beam", "greedy", "sample"])
def test_every_text_begins_with_the_prefix(decode):
    model = make_table_model(size=12, seed=8)
    texts = beam(
        model, [[], [5]], tokenizer=Letters(), decode=decode, prefix="bad", min_tokens=5, max_tokens=9,
        beam_size=4, unknown=False, seed=1, no_repeat=1,
    )  # fmt: skip
    assert all(text.text.startswith("bad") for text in texts)
    own = [
        model.logp_VV[a, b]
        for a, b in zip([START, *Letters().encode("ba")], Letters().encode("bad"), strict=True)
    ]
    assert texts[0].logprobs[:3] == pytest.approx(own)


def test_stop_texts_end_hypotheses_as_in_the_plain_twin():
    model = make_table_model(size=8, seed=9)
    asked = {"tokenizer": Letters(), "stop": ("ab", "c"), "max_tokens": 12, "n_best": 3, "unknown": False}
    assert flattened(beam(model, [[], [4]], **asked)) == flattened(plain(model, [[], [4]], **asked))


@pytest.mark.parametrize(
    "wrong", [{"groups": 3}, {"patience": 0}, {"coverage_penalty": -1}, {"min_ratio": 2.0, "max_ratio": 1.0}]
)
def test_values_outside_their_limits_are_refused(wrong):
    with pytest.raises(ValueError, match=r"groups|patience|coverage_penalty|min_ratio"):
        DecodeSettings(decode="beam", beam_size=4, **wrong)


@pytest.fixture(scope="module", params=["lstm", "transformer"])
def network(request):
    """A small network that has learned a few lines: its distributions are sharp, as those of a real one."""
    torch = pytest.importorskip("torch")
    from nextword.models.network import NeuralLanguageModel

    torch.manual_seed(0)
    made = catalog.find("model", request.param)
    built = made.build(made.Settings(hidden=32), 300, True)
    ids_BT = torch.from_numpy(np.random.default_rng(0).integers(3, 300, (40, 12)))
    ids_BT[:, 11] = END
    optimizer = torch.optim.Adam(built.parameters(), 0.02)
    for _ in range(25):
        read_BT = torch.cat([torch.full((40, 1), START), ids_BT[:, :-1]], dim=1)
        features_BTD, _ = built.read(read_BT, built.start(40))
        loss = built.head.loss(features_BTD.flatten(0, 1), ids_BT.flatten()) / ids_BT.numel()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return NeuralLanguageModel(built)


@pytest.mark.parametrize(
    "asked",
    [{"decode": "greedy"}, {"n_best": 5}, {"beam_size": 6, "groups": 2, "n_best": 6}, {"no_repeat": 2}],
)
def test_network_gives_the_same_texts_in_any_batch(network, asked):
    prompts = np.random.default_rng(1).integers(3, 300, (24, 3)).tolist()
    prompts = [prompt[: 1 + place % 3] for place, prompt in enumerate(prompts)]
    asked = {"beam_size": 5, "max_tokens": 12, **asked}
    together = beam(network, prompts, batch=512, **asked)
    assert flattened(beam(network, prompts, batch=1, **asked)) == flattened(together)


def test_network_is_searched_as_by_the_plain_twin(network):
    asked = {"beam_size": 5, "n_best": 5, "max_tokens": 12}
    prompts = [[5], [6, 7], [], [8]]
    found, expected = beam(network, prompts, **asked), plain(network, prompts, **asked)
    assert flattened(found) == flattened(expected)
    assert [text.score for text in found] == pytest.approx([text.score for text in expected], rel=1e-4)


def test_network_beam_of_one_is_greedy(network):
    prompts = [[5], [6, 7], []]
    one, greedy = (
        beam(network, prompts, max_tokens=12, **asked) for asked in ({"beam_size": 1}, {"decode": "greedy"})
    )
    assert flattened(one) == flattened(greedy)
