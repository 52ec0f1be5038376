"""Memories over models: the one contract, plain twins, and what is told of them."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from joined_rows import check_joined, states_after
from small_texts import SENTENCES

from nextword.core import catalog
from nextword.core.contracts import END, START, Block, Carrier, LanguageModel
from nextword.core.errors import ConfigError
from nextword.evaluation.compress import compressor as packing
from nextword.evaluation.lm.evidence import evidence
from nextword.evaluation.lm.perplexity import evaluate
from nextword.mixtures.cache import CacheSettings, NeuralCache
from nextword.mixtures.family import SavedMixture
from nextword.mixtures.members import Attached, together
from nextword.mixtures.mixture import Mixture
from nextword.mixtures.nearest import ExactSearch
from nextword.mixtures.neighbours import Neighbours, NeighboursSettings
from nextword.mixtures.recent import RecentSettings, RecentWords
from nextword.mixtures.remembering import Remembering
from nextword.models.distributions import as_numpy
from nextword.models.network import NeuralLanguageModel
from nextword.ngram import unbounded
from nextword.ngram.estimation import build
from nextword.ngram.settings import NgramSettings
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

torch.set_num_threads(1)

WORDS = 30
TOLERANCE = 1e-5
TEXT = (SENTENCES * 9).encode()


@functools.cache
def _network(name: str, vocab_size: int = WORDS) -> NeuralLanguageModel:
    torch.manual_seed(3)
    kind = catalog.find("model", name).Settings
    small = {"layers": 2, "hidden": 16, "context": 10}
    chosen = kind(**{key: value for key, value in small.items() if key in kind.model_fields})
    network = catalog.find("model", name).build(chosen, vocab_size, False)
    network.head.prepare(torch.arange(vocab_size).float())
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return NeuralLanguageModel(network)


def _theta(model: NeuralLanguageModel) -> float:
    before_BTD, _ = model.read(_ids(2, 30), np.array([30, 30]))
    return 4.0 / float(before_BTD.pow(2).sum(dim=-1).mean())


def _store(model: NeuralLanguageModel, count: int = 80) -> tuple[np.ndarray, np.ndarray]:
    words = np.random.default_rng(8).integers(2, WORDS, count)
    before_1TD, _ = model.read(words[None], np.array([count]))
    return before_1TD[0].numpy().astype(np.float32), words


def _neighbours(model: NeuralLanguageModel, k: int = 12) -> Neighbours:
    keys, words = _store(model)
    distances = ExactSearch(keys).find(torch.from_numpy(keys[:20]), k)[0]
    return Neighbours(
        NeighboursSettings(k=k, temperature=float(distances[:, -1].mean())), words, ExactSearch(keys)
    )


def _ids(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(rows * columns).integers(2, 12, (rows, columns))


@functools.cache
def _counts() -> LanguageModel:
    ids = np.concatenate([[START, *np.random.default_rng(i).integers(3, 12, 9), END] for i in range(30)])
    return build(ids.astype(np.int32), WORDS, NgramSettings(order=3))


@functools.cache
def _model(name: str) -> LanguageModel:
    """A memory over a model, by the names of both."""
    memory, _, base = name.partition(" ")
    if memory == "recent":
        recent = RecentWords(RecentSettings(size=7, decay=0.8), WORDS)
        return Mixture([_counts() if base == "ngram" else _network(base), recent], [0.6, 0.4])
    network = _network(base.split()[0])
    cache = NeuralCache(CacheSettings(size=7, theta=_theta(network)))
    if memory == "cache":
        return Remembering(network, [cache], [0.7, 0.3])
    if memory == "neighbours":
        return Remembering(network, [_neighbours(network)], [0.7, 0.3])
    members = [network, _counts(), Attached(cache, 0), Attached(_neighbours(network), 0)]
    return SavedMixture(members, [0.4, 0.3, 0.2, 0.1], [])


MODELS = [
    "cache lstm", "cache transformer", "cache window", "neighbours lstm", "neighbours transformer",
    "recent ngram", "recent lstm", "all lstm ngram", "all transformer ngram",
]  # fmt: skip
every_model = pytest.mark.parametrize("name", MODELS)


def _close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(as_numpy(found), as_numpy(expected), atol=TOLERANCE, rtol=0)


def _by_steps(model: LanguageModel, ids_BT: np.ndarray) -> np.ndarray:
    state = model.start(len(ids_BT))
    logp_BV, found = as_numpy(model.next(state)), []
    for ids_B in ids_BT.T:
        found.append(logp_BV[np.arange(len(ids_B)), ids_B])
        logp, state = model.step(ids_B, state)
        logp_BV = as_numpy(logp)
    return np.stack(found, axis=1)


@every_model
def test_steps_give_what_scoring_gives(name):
    model, ids_BT = _model(name), _ids(3, 26)
    logp_BT, state = model.score(ids_BT, np.full(3, 26))
    _close(_by_steps(model, ids_BT), logp_BT)
    last = functools.reduce(lambda s, ids_B: model.step(ids_B, s)[1], ids_BT.T, model.start(3))
    _close(model.next(state), model.next(last))


@every_model
@given(
    cuts=st.lists(st.integers(0, 30), max_size=4),
    lengths=st.lists(st.integers(0, 30), min_size=3, max_size=3),
)
@settings(max_examples=8, deadline=None)
def test_pieces_of_any_lengths_give_what_the_whole_gives(name, cuts, lengths):
    model, ids_BT, lengths_B = _model(name), _ids(3, 30), np.array(lengths)
    whole_BT, last = model.score(ids_BT, lengths_B)
    state, found = None, []
    for first, end in itertools.pairwise([0, *sorted(cuts), 30]):
        part_B = np.clip(lengths_B - first, 0, end - first)
        logp_BT, state = model.score(ids_BT[:, first:end], part_B, state)
        found.append(as_numpy(logp_BT))
    _close(np.concatenate(found, axis=1), whole_BT)
    _close(model.next(state), model.next(last))
    assert not as_numpy(whole_BT)[np.arange(30) >= lengths_B[:, None]].any()


@every_model
def test_a_row_is_scored_as_it_is_alone(name):
    model, ids_BT, lengths_B = _model(name), _ids(4, 25), np.array([25, 7, 0, 13])
    logp_BT, state = model.score(ids_BT, lengths_B)
    for row, length in enumerate(lengths_B):
        alone, after = model.score(ids_BT[row : row + 1, :length], np.array([length]))
        _close(logp_BT[row, :length], alone[0])
        _close(model.next(model.reorder(state, np.array([row]))), model.next(after))


@every_model
def test_rows_are_reordered_repeated_and_dropped_and_old_states_stay(name):
    model, ids_BT, rows = _model(name), _ids(3, 14), np.array([2, 0, 0, 1])
    state = model.score(ids_BT, np.array([14, 9, 12]))[1]
    before_BV = np.array(as_numpy(model.next(state)))
    picked = model.reorder(state, rows)
    _close(model.next(picked), before_BV[rows])
    words = np.array([4, 5, 6, 7])
    expected = [
        as_numpy(model.step(words[i : i + 1], model.reorder(state, rows[i : i + 1]))[0])[0] for i in range(4)
    ]
    _close(model.step(words, picked)[0], np.stack(expected))
    _close(model.next(state), before_BV)


@every_model
def test_joined_rows_go_on_as_they_do_apart(name):
    model = _model(name)
    texts = [[[4, 5, 6], []], [[]], [[*range(3, 12)] * 3, [7]], [[3] * 7]]
    states = states_after(model, texts, [True, False, True, False])
    check_joined(model, states, [[3 + at, 5, 4][: 1 + at % 3] for at in range(6)], 1e-5)
    check_joined(model, states[1:2], [[5]], 1e-5)


@pytest.mark.parametrize("name", catalog.names("memory"))
@given(
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    rows=st.lists(st.integers(1, 3), min_size=4, max_size=4),
)
@settings(max_examples=15, deadline=None)
def test_rows_of_a_memory_are_joined_and_taken_out_again(name, counts, rows):
    network, states = _network("lstm"), []
    memory: Any = {
        "cache": lambda: NeuralCache(CacheSettings(size=7, theta=_theta(network))),
        "recent": lambda: RecentWords(RecentSettings(size=7, decay=0.8), WORDS),
        "neighbours": lambda: _neighbours(network),
    }[name]()
    for seed, (count, batch) in enumerate(zip(counts, rows, strict=False)):
        ids_BT = torch.from_numpy(np.random.default_rng(seed).integers(2, 12, (batch, count)))
        lengths_B = torch.full((batch,), count)
        before_BTD, _ = network.read(ids_BT, lengths_B)
        is_model = name == "recent"
        args = (ids_BT, lengths_B) if is_model else (before_BTD, ids_BT, lengths_B)
        states.append(memory.score(*args, memory.start(batch))[-1] if count else memory.start(batch))
    joined = memory.join(states)
    assert memory.rows(joined) == sum(map(memory.rows, states)) == sum(rows[: len(counts)])
    features_BD = (
        network.start(memory.rows(joined)).feature_BD
        + torch.arange(memory.rows(joined)).float()[:, None] / 10
    )
    first = 0
    for state in states:
        part = torch.arange(first, first + memory.rows(state))
        first += memory.rows(state)
        back = memory.reorder(joined, part)
        assert memory.rows(back) == memory.rows(state)
        said = [
            [memory.next(each)] if name == "recent" else memory.next(features_BD[part], each, WORDS)
            for each in (state, back)
        ]
        for expected, found in zip(*said, strict=True):
            _close(found, expected)


@every_model
def test_distributions_sum_to_one_from_the_first_word_on(name):
    model = _model(name)
    for begin in (True, False):
        state = model.score(_ids(2, 13), np.array([13, 0]), model.start(2, None, begin))[1]
        p_BV = np.exp(as_numpy(model.next(state), np.float64))
        np.testing.assert_allclose(p_BV.sum(axis=1), 1.0, atol=1e-5)
        assert not p_BV[:, START].any()
    assert isinstance(model, LanguageModel)
    assert isinstance(model, Carrier)


def _plain_cache(model: NeuralLanguageModel, words: np.ndarray, size: int, theta: float) -> list[float]:
    """p_cache of each word after the first, as the paper writes it: no batch, no window of keys."""
    state, keys, found = model.start(1), [], []
    for t, word in enumerate(words):
        h = state.feature_BD[0].double().numpy()
        first = max(0, t - size)
        weights = np.exp([theta * h @ keys[i] for i in range(first, t)])
        hits = sum(weight for weight, i in zip(weights, range(first, t), strict=True) if words[i] == word)
        found.append(hits / weights.sum() if t else np.nan)
        keys.append(h)
        state = model.step(np.array([word]), state)[1]
    return found[1:]


@pytest.mark.parametrize("base", ["lstm", "transformer"])
@pytest.mark.parametrize("size", [1, 5, 100])
def test_the_cache_is_what_its_equation_says(base, size):
    model, words = _network(base), _ids(1, 40)
    theta = _theta(model)
    alone = Remembering(model, [NeuralCache(CacheSettings(size=size, theta=theta))], [0.0, 1.0])
    logp_1T, _ = alone.score(words, np.array([40]))
    expected = _plain_cache(model, words[0], size, theta)
    np.testing.assert_allclose(np.exp(as_numpy(logp_1T)[0, 1:]), expected, atol=1e-5)


def test_the_cache_is_the_same_however_few_products_are_held(monkeypatch):
    model, ids_BT = _model("cache lstm"), _ids(3, 40)
    expected, _ = model.score(ids_BT, np.array([40, 3, 22]))
    monkeypatch.setattr("nextword.mixtures.cache.HELD", 1)
    _close(model.score(ids_BT, np.array([40, 3, 22]))[0], expected)


def test_a_cache_without_sharpness_counts_words_like_the_plain_one():
    model, ids_BT = _network("lstm"), _ids(2, 30)
    flat = Remembering(model, [NeuralCache(CacheSettings(size=9, theta=0.0))], [0.0, 1.0])
    plain = RecentWords(RecentSettings(size=9, decay=1.0), WORDS)
    lengths = np.array([30, 17])
    found, expected = flat.score(ids_BT, lengths)[0], plain.score(ids_BT, lengths)[0]
    _close(as_numpy(found)[:, 1:], expected[:, 1:])


@given(
    words=st.lists(st.integers(2, 8), min_size=1, max_size=30),
    size=st.integers(1, 12),
    decay=st.floats(0.3, 1.0),
)
@settings(max_examples=40, deadline=None)
def test_recent_words_weigh_what_their_equation_says(words, size, decay):
    model = RecentWords(RecentSettings(size=size, decay=decay), WORDS)
    logp, _ = model.score(np.array([words]), np.array([len(words)]))
    for t, word in enumerate(words):
        last = words[max(0, t - size) : t][::-1]
        hits = sum(decay**age for age, other in enumerate(last) if other == word)
        p = hits / sum(decay**age for age in range(len(last))) if last else 1 / (WORDS - 1)
        assert np.exp(logp[0, t]) == pytest.approx(p, abs=1e-12)


def test_neighbours_are_those_that_brute_force_finds(monkeypatch):
    monkeypatch.setattr("nextword.mixtures.nearest.KEYS", 17)
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(83, 5)).astype(np.float16)
    words, queries = rng.integers(2, WORDS, 83), rng.normal(size=(9, 5)).astype(np.float32)
    distance_QM = ((queries[:, None].astype(np.float64) - keys.astype(np.float64)) ** 2).sum(axis=2)
    nearest = np.argsort(distance_QM, axis=1)[:, :6]
    found, at = ExactSearch(keys).find(torch.from_numpy(queries), 6)
    assert np.array_equal(at.numpy(), nearest)
    np.testing.assert_allclose(found.numpy(), np.take_along_axis(distance_QM, nearest, 1), rtol=1e-5)
    memory = Neighbours(NeighboursSettings(k=6, temperature=2.0), words, ExactSearch(keys))
    weight_QK = np.exp(-np.take_along_axis(distance_QM, nearest, 1) / 2.0)
    weight_QK /= weight_QK.sum(axis=1, keepdims=True)
    logp_QV, _ = memory.next(torch.from_numpy(queries), memory.start(9), WORDS)
    for row in range(9):
        expected = np.bincount(words[nearest[row]], weight_QK[row], WORDS)
        np.testing.assert_allclose(logp_QV[row].exp().numpy(), expected, atol=1e-6)


def test_a_network_without_memories_speaks_where_they_have_nothing_to_say():
    model = _model("cache lstm")
    base = _network("lstm")
    _close(model.next(model.start(2)), base.next(base.start(2)))


def test_weights_of_members_are_those_of_the_flat_mixture():
    network, counts, ids_BT, lengths = _network("lstm"), _counts(), _ids(2, 20), np.array([20, 20])
    cache = NeuralCache(CacheSettings(size=9, theta=_theta(network)))
    alone = Remembering(network, [cache], [0.0, 1.0])
    expected = sum(
        weight * np.exp(as_numpy(model.score(ids_BT, lengths)[0], np.float64))
        for weight, model in ((0.5, network), (0.3, counts), (0.2, alone))
    )
    mixed = SavedMixture([network, counts, Attached(cache, 0)], [0.5, 0.3, 0.2], [])
    _close(mixed.score(ids_BT, lengths)[0][:, 1:], np.log(expected)[:, 1:])


def test_a_memory_of_a_member_that_has_no_features_is_refused():
    cache = NeuralCache(CacheSettings())
    with pytest.raises(ConfigError, match="features of a model that has none"):
        together([_counts(), Attached(cache, 0)], [0.5, 0.5])
    with pytest.raises(ConfigError, match="names a member that is missing"):
        together([_network("lstm"), Attached(cache, 5)], [0.5, 0.5])


def _told(tokenizer: Any) -> SavedMixture:
    ids = np.concatenate([piece.ids for piece in tokenizer.encode_blocks([Block(TEXT, True)])])
    network = _network("lstm", tokenizer.vocab_size)
    network.network.head.prepare(torch.from_numpy(np.bincount(ids, minlength=tokenizer.vocab_size)))
    counts = build(ids, tokenizer.vocab_size, NgramSettings(order=2))
    longest = unbounded.build(ids, tokenizer.vocab_size, unbounded.UnboundedSettings())
    cache = Attached(NeuralCache(CacheSettings(size=50, theta=_theta(network))), 0, "a cache")
    recent = Attached(RecentWords(RecentSettings(size=30, decay=0.9), tokenizer.vocab_size), None, "words")
    return SavedMixture([network, counts, longest, cache, recent], [0.3, 0.2, 0.2, 0.2, 0.1], [])


def test_a_mixture_with_memories_compresses_and_has_the_size_that_was_measured():
    tokenizer = fit_tokenizer("words", [Block(TEXT, True)], TextSettings())
    mixture = _told(tokenizer)
    coded = packing.compress(mixture, tokenizer, TEXT, "run")
    assert packing.decompress(mixture, tokenizer, coded, "run") == TEXT
    report = evaluate(mixture, tokenizer, [Block(TEXT, True)])
    bits = report.bits_per_byte * len(TEXT)
    assert abs(8 * (len(coded) - packing.HEADER) - bits) < 0.01 * bits + 64
    assert "ctx:document|" in report.signature


def test_evidence_adds_up_to_the_probability_and_names_places():
    tokenizer = fit_tokenizer("words", [Block(TEXT, True)], TextSettings())
    mixture, text = _told(tokenizer), "the cat sat on the mat .\nthe dog sat on the cat\n"
    names = ("lstm", "bigram", "unbounded", "cache", "recent")
    found = evidence(mixture, tokenizer, text, 3, names)
    report = evaluate(mixture, tokenizer, [Block(text.encode(), True)])
    assert len(found) == report.tokens
    assert sum(-each.logprob for each in found) / len(found) == pytest.approx(report.nll, abs=1e-5)
    last = found[-2]
    assert (last.text, last.line) == ("cat", 2)
    assert [each.name for each in last.said] == list(names)
    cached = last.said[3]
    assert cached.seen[0].back == 12
    assert cached.seen[0].context == "the"
    assert sum(each.weight for each in cached.seen) == pytest.approx(cached.probability, abs=1e-6)
    assert last.said[2].context == 3  # "sat on the"
    assert "12 tokens ago" in str(last)
    assert "cache" in last.brief()
