"""A search that keeps its texts as trees finds what one finds that copies windows."""

from __future__ import annotations

import numpy as np
import pytest
from letters import Letters
from table_models import make_table_model

from nextword.core.contracts import END, Branching
from nextword.decode.generate import DecodeSettings, collect, generate
from nextword.decode.limits import Written, limits_of

torch = pytest.importorskip("torch")
V = 23
PROMPTS = [(3, 4, 5), (6,), (), (7, 8, 9, 10, 11), (12, 13)]


def language_model(**values):
    """A Transformer whose weights are large enough that few choices are close."""
    from nextword.models.network import NeuralLanguageModel
    from nextword.models.transformer import TransformerNetwork, TransformerSettings

    torch.manual_seed(0)
    settings = TransformerSettings(**{"layers": 2, "hidden": 32, "heads": 2, "context": 64, **values})
    network = TransformerNetwork(settings, V, True)
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.2 * torch.randn_like(weight)
    return NeuralLanguageModel(network)


def searched(model, monkeypatch, branched, **asked):
    monkeypatch.setattr("nextword.decode.beam._BRANCHED", 12 if branched else 0)
    settings = DecodeSettings(**{"decode": "beam", "beam_size": 5, "n_best": 3, "max_tokens": 20, **asked})
    return collect(generate(model, PROMPTS, settings))


@pytest.mark.parametrize(
    "values", [{}, {"position": "learned"}, {"kv_heads": 1}, {"position": "alibi"}, {"position": "shaw"}]
)
@pytest.mark.parametrize("asked", [{}, {"batch": 1}, {"beam_size": 6, "groups": 2}, {"min_tokens": 12}])
def test_trees_and_windows_give_the_same_texts(values, asked, monkeypatch):
    model = language_model(**values)
    trees, windows = (searched(model, monkeypatch, branched, **asked) for branched in (True, False))
    assert [text.ids for text in trees] == [text.ids for text in windows]
    scores = [[text.logprob for text in texts] for texts in (trees, windows)]
    np.testing.assert_allclose(*scores, atol=1e-4)


def test_a_text_longer_than_the_context_leaves_the_trees(monkeypatch):
    model = language_model(context=8)
    trees, windows = (searched(model, monkeypatch, on, min_tokens=16) for on in (True, False))
    assert [text.ids for text in trees] == [text.ids for text in windows]


def test_many_rows_are_joined_again(monkeypatch):
    model = language_model()
    expected = searched(model, monkeypatch, True)
    monkeypatch.setattr("nextword.models.transformer.POSITIONS", 7)
    assert [text.ids for text in searched(model, monkeypatch, True)] == [text.ids for text in expected]


@torch.inference_mode()
def test_rows_of_trees_have_the_windows_that_copies_have():
    network = language_model().network
    ids_BT = torch.tensor([[1, 4, 5], [1, 6, 7]])
    plain = network.read(ids_BT, network.start(2))[1]
    branched = network.branch(network.read(ids_BT, network.start(2))[1])
    draw = np.random.default_rng(0)
    for rows, count in (((0, 0, 1, 1), 4), ((1, 0, 3, 3), 4), ((2, 3), 2), ((0, 1, 0), 3)):
        plain, branched = (network.reorder(each, torch.tensor(rows)) for each in (plain, branched))
        words_B1 = torch.from_numpy(draw.integers(3, V, (count, 1)))
        (one, plain), (other, branched) = (network.read(words_B1, each) for each in (plain, branched))
        torch.testing.assert_close(one, other)
    used = int(plain.count_B.max())
    for own, other in zip(plain.layers, branched.layers, strict=True):
        for window, tree in zip(own, other.plain(), strict=True):
            torch.testing.assert_close(window[:, :, :used], tree)


def test_models_of_counts_have_no_trees():
    assert not isinstance(make_table_model(V, 1), Branching)


def test_limits_that_forbid_nothing_new_copy_nothing():
    rows = [Written(), Written()]
    logp_RV = torch.randn(2, V).log_softmax(dim=-1)
    limits = limits_of(DecodeSettings())
    before = logp_RV.clone()
    allowed_RV = limits.applied(logp_RV, rows)
    assert allowed_RV is not logp_RV
    torch.testing.assert_close(logp_RV, before)
    assert limits.applied(allowed_RV, rows) is allowed_RV
    short = limits_of(DecodeSettings(min_tokens=1)).applied(allowed_RV, rows)
    assert bool(short[:, 2].isneginf().all())
    assert not bool(allowed_RV[:, 2].isneginf().any())


@pytest.mark.parametrize("most", [1, 4, 9])
def test_reasons_to_stop_are_those_of_the_rules(most):
    model, source = language_model(), [()] * 12
    asked = {"temperature": 2.0, "logit_bias": {END: 2.0}}
    settings = DecodeSettings(decode="sample", max_tokens=most, seed=3, **asked)
    fast = collect(generate(model, source, settings))
    # A text that never comes makes the chooser ask the rules, row by row.
    slow = collect(generate(model, source, settings.model_copy(update={"stop": ("!",)}), Letters()))
    assert [(text.ids, text.reason) for text in fast] == [(text.ids, text.reason) for text in slow]
    assert {text.reason for text in fast} <= {"end", "length"}


@torch.inference_mode()
@pytest.mark.parametrize("mask", ["none", "hidden", "added"])
def test_few_queries_are_answered_as_by_the_fused_operator(mask):
    from nextword.blocks import attention

    torch.manual_seed(0)
    heads = language_model().network.stack.blocks[0].mixer
    q_BNTK, keys, values = (torch.randn(3, 2, size, 16) for size in (2, 9, 9))
    is_seen = torch.rand(3, 1, 1, 9) > 0.4
    is_seen[..., 0] = True
    bias = torch.zeros(3, 1, 1, 9).masked_fill(~is_seen, -torch.inf)
    given = {"none": None, "hidden": is_seen, "added": bias}[mask]
    assert attention._are_few(q_BNTK, keys)
    fused = torch.nn.functional.scaled_dot_product_attention(q_BNTK, keys, values, given, scale=heads.scale)
    torch.testing.assert_close(heads.weigh(q_BNTK, keys, values, given), fused)
