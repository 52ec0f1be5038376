"""The Transformer family: one contract however a text is cut, refusals in one sentence, parts by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from joined_rows import check_joined, states_after

from nextword.core.catalog import names
from nextword.core.config import build as build_settings
from nextword.core.contracts import START, UNKNOWN
from nextword.core.errors import ConfigError
from nextword.models.build import shape_of
from nextword.models.network import NeuralLanguageModel
from nextword.models.transformer import TRANSFORMER, TransformerNetwork, TransformerSettings

V = 11


def network_of(seed: int = 0, closed: bool = False, **values) -> TransformerNetwork:
    """A tiny network whose weights are all random, so that every part shows."""
    small = {"layers": 2, "hidden": 16, "heads": 4, "context": 6, "init": "gpt2"}
    network = TRANSFORMER.build(TransformerSettings(**(small | values)), V, closed)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.4)
    return network


def model_of(**values) -> NeuralLanguageModel:
    return NeuralLanguageModel(network_of(**values))


def by_steps(model: NeuralLanguageModel, ids: list[int]) -> tuple[np.ndarray, torch.Tensor]:
    """log p of each word, one word at a time, and the distribution at the end."""
    state, found = model.start(1), []
    logp = model.next(state)
    for word in ids:
        found.append(float(logp[0, word]))
        logp, state = model.step(np.array([word]), state)
    return np.array(found), logp[0]


def padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), max(int(lengths.max()), 1)), 3)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    return ids, lengths


row_lists = st.lists(st.lists(st.integers(2, V - 1), max_size=25), min_size=1, max_size=4)
contexts = st.integers(1, 9)
overlaps = st.sampled_from([0.0, 0.3, 0.5, 0.9])


@hypothesis_settings(max_examples=20)
@given(row_lists, contexts, overlaps, st.sampled_from(names("position")), st.sampled_from([1, 2, 4]))
def test_score_of_a_padded_batch_equals_stepping_each_row(rows, context, overlap, position, kv_heads):
    model = model_of(context=context, overlap=overlap, position=position, kv_heads=kv_heads)
    ids, lengths = padded(rows)
    logp, state = model.score(ids, lengths)
    after = model.next(state)
    for place, row in enumerate(rows):
        found, last = by_steps(model, row)
        np.testing.assert_allclose(logp[place, : len(row)], found, atol=1e-5)
        assert not logp[place, len(row) :].any()
        torch.testing.assert_close(after[place], last, atol=1e-5, rtol=0)


@hypothesis_settings(max_examples=20)
@given(row_lists, contexts, overlaps, st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_score_in_pieces_equals_score_at_once(rows, context, overlap, cuts):
    """Pieces are of any length in each row, so that windows of one batch fill at different times."""
    model = model_of(context=context, overlap=overlap)
    ids, lengths = padded(rows)
    whole, end = model.score(ids, lengths)
    state, done = model.start(len(rows)), [0] * len(rows)
    found = [[] for _ in rows]
    for piece, cut in enumerate([*cuts, 25]):
        pairs = zip(rows, done, strict=True)
        sizes = [min(cut + (piece + place) % 2, len(row) - at) for place, (row, at) in enumerate(pairs)]
        part, own = padded([row[at : at + size] for row, at, size in zip(rows, done, sizes, strict=True)])
        logp, state = model.score(part, own, state)
        for place, size in enumerate(sizes):
            found[place] += logp[place, :size].tolist()
            done[place] += size
    for place, row in enumerate(rows):
        np.testing.assert_allclose(found[place], whole[place, : len(row)], atol=1e-5)
    torch.testing.assert_close(model.next(state), model.next(end), atol=1e-5, rtol=0)


@hypothesis_settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(2, V - 1)), min_size=1, max_size=30), contexts)
def test_an_old_state_stays_what_it_was(moves, context):
    """A tree of states that share buffers: each gives what its own words give, whoever was read later."""
    model = model_of(context=context)
    states, texts = [model.start(1)], [[]]
    for back, word in moves:
        parent = max(0, len(states) - 1 - back)
        states.append(model.step(np.array([word]), states[parent])[1])
        texts.append([*texts[parent], word])
    for state, text in zip(states, texts, strict=True):
        torch.testing.assert_close(model.next(state)[0], by_steps(model, text)[1], atol=1e-5, rtol=0)


@hypothesis_settings(max_examples=15)
@given(
    st.lists(st.lists(st.integers(2, V - 1), max_size=15), min_size=3, max_size=3),
    st.lists(st.integers(0, 2), min_size=1, max_size=5),
)
def test_reorder_copies_and_drops_rows(rows, order):
    model = model_of()
    ids, lengths = padded(rows)
    state = model.reorder(model.score(ids, lengths)[1], np.array(order))
    logp, _ = model.step(np.full(len(order), 4), state)
    for place, row in enumerate(order):
        torch.testing.assert_close(logp[place], by_steps(model, [*rows[row], 4])[1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("position", names("position"))
@pytest.mark.parametrize("context", [1, 6, 40])
def test_caches_of_different_fill_are_joined_whatever_tells_positions(position, context):
    model = model_of(position=position, context=context)
    texts = [[[4, 5, 6, 7, 8]], [[]], [[3] * 17, [4, 5]], [[6] * 4, [7, 8, 9, 10, 3, 4, 5]]]
    states = states_after(model, texts, [True, False, True, False])
    stepped = model.step(np.array([5, 5]), model.step(np.array([9, 9]), states[-1])[1])[1]  # room to spare
    check_joined(model, [*states, stepped], [[3, 4], [5], [6, 7, 8], [9], [4] * 9, [5], [6], [7]], 1e-5)


@pytest.mark.parametrize("norm_place", ["pre", "post"])
def test_pads_with_not_a_number_change_nothing(norm_place):
    model, bad = model_of(norm_place=norm_place, context=8, tied=False), V - 1
    with torch.no_grad():
        model.network.embedding.weight_VE[bad] = torch.nan
    ids, lengths = padded([[5, 6, 7], [4] * 20, [], [8]])
    expected, _ = model.score(ids, lengths)
    ids[np.arange(ids.shape[1]) >= lengths[:, None]] = bad
    found, state = model.score(ids, lengths)
    torch.testing.assert_close(found, expected, atol=0, rtol=0)
    further, _ = model.score(ids, lengths, state)
    assert found.isfinite().all()
    assert further.isfinite().all()


def test_context_is_kept_word_for_word():
    """A word sees as many words as its window holds, at least the overlap, and none before."""
    model = model_of(context=6, overlap=0.5)
    ids = np.random.default_rng(0).integers(2, V, (1, 14))
    logp, _ = model.score(ids, np.array([14]))
    for position in range(1, 14):
        read = position + 1  # with START
        first = 0 if read <= 6 else 3 * (1 + (read - 7) // 3)
        window = ([START, *ids[0]])[first:read]
        features, _ = model.network.read(torch.tensor([window]), model.network.start(1))
        own = model.network.head.log_probs(features[:, -1])[0, ids[0, position]].detach()
        assert abs(float(own) - float(logp[0, position])) < 1e-5


def test_probabilities_sum_to_one_and_forbidden_words_have_none():
    model = model_of(closed=True)
    logp = model.next(model.start(2))
    torch.testing.assert_close(logp.exp().sum(-1), torch.ones(2))
    assert logp[:, [START, UNKNOWN]].isneginf().all()


def test_many_rows_are_read_some_at_a_time(monkeypatch):
    model = model_of(context=6)
    ids = np.random.default_rng(1).integers(2, V, (7, 17))
    lengths = np.array([17, 3, 0, 9, 17, 1, 12])
    expected, _ = model.score(ids, lengths)
    monkeypatch.setattr("nextword.models.transformer.POSITIONS", 13)
    found, state = model.score(ids, lengths)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert state.inner.count_B.max() <= 6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_derivatives_agree_with_differences(dtype):
    """Windows past the context included; in float64 by gradcheck, in float32 every weight gets one."""
    network = network_of(context=4, layers=1, hidden=8, heads=2, kv_heads=1).to(dtype)
    ids = torch.randint(2, V, (2, 7), generator=torch.Generator().manual_seed(0))

    def features(*_: torch.Tensor) -> torch.Tensor:
        return network.read(ids, network.start(2))[0]

    weights = [p for name, p in network.named_parameters() if not name.startswith("head")]
    if dtype == torch.float64:
        assert torch.autograd.gradcheck(features, weights, fast_mode=True)
    else:
        features().square().sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in weights)


@pytest.mark.needs("bf16")
def test_attention_is_in_float32_under_autocast():
    network = network_of(norm="layernorm")
    ids = torch.randint(2, V, (2, 6))
    with torch.autocast("cpu", torch.bfloat16):
        features, state = network.read(ids, network.start(2))
    assert state.layers[0].keys_BNSK.dtype == torch.float32
    exact, _ = network.read(ids, network.start(2))
    torch.testing.assert_close(features.float(), exact, atol=0.5, rtol=0.1)
    features.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in network.parameters() if p.grad is not None)


slots = [("ffn", "ffn"), ("norm", "norm"), ("norm_place", "norm_place"), ("position", "position")]
slots += [
    ("connections", "join"),
    ("qk_norm", "qk_norm"),
    ("init", "init"),
    ("block", "block"),
    ("mixer", "mixer"),
]


@pytest.mark.parametrize(("setting", "name"), [(s, n) for s, slot in slots for n in names(slot)])
def test_every_named_part_learns_and_reads_alike(setting, name):
    """Each part of each slot: gradients after two steps, stepping equals scoring."""
    torch.manual_seed(1)
    small = {"layers": 2, "hidden": 16, "heads": 2, "context": 8, "init": "gpt2"}
    beside = {"stack": "sphere"} if (setting, name) == ("init", "sphere") else {}  # refused without
    settings = TransformerSettings(**(small | beside | {setting: name}))
    network = TRANSFORMER.build(settings, V, False)
    ids = torch.randint(2, V, (4, 9))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(30):
        features, _ = network.read(ids[:, :-1], network.start(4))
        loss = network.head.loss(features.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    assert all(p.grad is not None for p in network.parameters())
    model = NeuralLanguageModel(network)
    logp, _ = model.score(ids.numpy(), np.full(4, 9))
    np.testing.assert_allclose(logp[0], by_steps(model, ids[0].tolist())[0], atol=1e-5)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"hidden": 100, "heads": 7}, ["'model.heads' is 7", "'model.hidden' 100", "5 or 10"]),
        ({"hidden": 64, "heads": 8, "kv_heads": 3}, ["'model.kv_heads' is 3", "'model.heads' 8", "2 or 4"]),
        ({"hidden": 15, "heads": 3}, ["'rope'", "5 features", "even"]),
        ({"ffn": "swigu"}, ["'model.ffn' is 'swigu'", "did you mean 'swiglu'"]),
        ({"position": "rotary"}, ["'model.position' is 'rotary'", "rope"]),
        ({"connections": "plain", "init": "zero"}, ["'model.connections' is 'plain'", "'gpt2'"]),
        ({"context": 0}, ["'model.context' is 0", "1 or more"]),
    ],
)
def test_settings_that_cannot_go_together_say_so(values, words):
    with pytest.raises(ConfigError) as error:
        build_settings(
            {"model": TransformerSettings}, {f"model.{key}": value for key, value in values.items()}
        )
    sentence = str(error.value)
    assert all(word in sentence for word in words), sentence
    assert "\n" not in sentence


def test_sizes_left_open_are_chosen():
    shape = shape_of(TransformerSettings(hidden=200))
    assert (shape.heads, shape.head_size, shape.kv_heads, shape.inner) == (2, 100, 2, 800)
    assert shape_of(TransformerSettings(hidden=384)).heads == 6
    assert shape_of(TransformerSettings(hidden=384, ffn="swiglu")).inner == 1024
    assert shape_of(TransformerSettings(hidden=7, position="none")).heads == 1


def test_a_row_of_a_state_that_was_read_without_begin_starts_empty():
    model = model_of()
    state = model.start(2, begin=False)
    assert state.inner.count_B.tolist() == [0, 0]
    logp, _ = model.score(np.array([[4, 5], [5, 4]]), np.array([2, 2]), state)
    assert logp.isfinite().all()


def test_weights_laid_out_for_reading_give_the_same_and_are_saved_alike():
    from safetensors.torch import load, save

    from nextword.models.family import distinct

    network, laid_out = network_of(), network_of()
    laid_out.ready()
    ids, lengths = padded([[5, 6, 7, 8, 9, 5, 6, 7, 3], [4]])
    expected, _ = NeuralLanguageModel(network).score(ids, lengths)
    found, _ = NeuralLanguageModel(laid_out).score(ids, lengths)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    pair = [load(save(distinct(each.state_dict()))) for each in (network, laid_out)]
    assert all(torch.equal(pair[0][name], pair[1][name]) for name in pair[0])
