"""Encoder-decoders: one contract, whatever decoder, encoder, context and attention."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_translators import IDS, LENGTHS, model, source, vocabulary

from nextword.blocks.cache import Memory
from nextword.core import catalog
from nextword.core.contracts import Aligner, LanguageModel, Source
from nextword.core.errors import ConfigError

torch.set_num_threads(1)
CLOSE = {"atol": 1e-5, "rtol": 1e-4}
KINDS = [
    *((name, {}) for name in catalog.names("translator")),
    *(("lstm", {"attention": kind, "attend": "before"}) for kind in catalog.names("attention")),
    *(("lstm", {"attention": kind, "attend": "after"}) for kind in catalog.names("attention")),
    *(("gru", {"context": context}) for context in ("init", "every-step", "init+every-step", "attention")),
    *(("lstm", {"encoder": kind}) for kind in ("transformer", "convolution", "window", "gru")),
    ("lstm", {"readout": "linear", "bidirectional": "none", "context": "init+every-step+attention"}),
    ("transformer", {"encoder": "lstm"}),
    ("transformer", {"position": "sinusoidal", "norm_place": "post", "norm": "layernorm", "bias": True,
                     "embedding_kind": "scaled", "encoder_layers": 1}),
    ("transformer", {"link": "transparent", "position": "t5"}),
    ("transformer", {"encoder_stack": "funnel", "position": "none"}),
    ("transformer", {"encoder_stack": "shared", "tied": False, "share_inputs": "yes"}),
    ("transformer", {"ffn": "experts", "stack": "shared", "encoder_stack": "plain"}),
    ("lstm", {"copying": True}),
    ("gru", {"copying": True, "coverage": True}),
    ("gru", {"coverage": True, "attend": "after"}),
    ("lstm", {"copying": True, "attend": "after", "attention": "multihead", "head": "adaptive"}),
    ("transformer", {"copying": True}),
    ("transformer", {"copying": True, "heads": 2, "kv_heads": 1, "encoder": "lstm"}),
]  # fmt: skip
every_kind = pytest.mark.parametrize(("name", "given"), KINDS, ids=[f"{name} {how}" for name, how in KINDS])


@every_kind
def test_steps_equal_scores(name, given):
    made = model(name, given)
    assert isinstance(made, LanguageModel)
    begun = made.start(3, source([6, 2, 4]))
    logp_BT, after = made.score(IDS, LENGTHS, begun)
    state, logp_BV = begun, made.next(begun)
    assert torch.allclose(logp_BV.exp().sum(dim=1), torch.ones(3), atol=1e-5)
    for t in range(5):
        for row in range(3):
            expected = logp_BV[row, IDS[row, t]] if t < LENGTHS[row] else torch.tensor(0.0)
            torch.testing.assert_close(logp_BT[row, t], expected, **CLOSE)
        logp_BV, state = made.step(IDS[:, t], state)
    torch.testing.assert_close(made.next(after)[0], logp_BV[0], **CLOSE)


@every_kind
def test_neighbours_and_padding_change_nothing(name, given):
    made, sources = model(name, given), source([6, 2, 4])
    logp_BT, after = made.score(IDS, LENGTHS, made.start(3, sources))
    for row, length in enumerate((6, 2, 4)):
        alone = made.start(1, Source(sources.ids_BS[row : row + 1, :length], np.array([length])))
        own_1T, own = made.score(IDS[row : row + 1], LENGTHS[row : row + 1], alone)
        torch.testing.assert_close(own_1T[0], logp_BT[row], **CLOSE)
        torch.testing.assert_close(made.next(own)[0], made.next(after)[row], **CLOSE)


@every_kind
def test_rows_are_taken_and_joined(name, given):
    made = model(name, given)
    _, after = made.score(IDS, LENGTHS, made.start(3, source([6, 2, 4])))
    expected_BV, _ = made.step([3] * 3, after)
    rows = [2, 2, 0, 0, 0, 1]
    taken = made.reorder(after, np.array(rows))
    torch.testing.assert_close(made.step([3] * 6, taken)[0], expected_BV[rows], **CLOSE)
    joined = made.join([made.start(1, source([9], seed=5)), taken, made.reorder(after, np.array([0]))])
    assert made.rows(joined) == 8
    torch.testing.assert_close(made.step([3] * 8, joined)[0][1:], expected_BV[[*rows, 0]], **CLOSE)


@every_kind
def test_attention_sums_to_one_over_real_positions_only(name, given):
    made = model(name, given)
    if "attention" not in given.get("context", "attention") or given.get("encoder_stack") == "funnel":
        assert not isinstance(made, Aligner)
        return
    assert isinstance(made, Aligner)
    begun = made.start(3, source([6, 2, 4]))
    _, after = made.score(IDS, LENGTHS, begun)
    for state in (begun, after, made.reorder(after, np.array([1, 1, 2]))):
        assert torch.allclose(made.attention(state).sum(dim=1), torch.ones(3), atol=1e-5)
    assert (made.attention(after)[1, 2:] == 0).all()
    assert (made.attention(after)[2, 4:] == 0).all()
    alone = made.start(1, Source(source([6, 2, 4]).ids_BS[1:2, :2], np.array([2])))
    own = made.attention(made.score(IDS[1:2, :3], np.array([3]), alone)[1])
    torch.testing.assert_close(own[0], made.attention(after)[1, :2], **CLOSE)


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_bad_numbers_past_the_end_of_a_source_are_never_looked_at(name):
    made = model(name, {})
    network, lengths_B = made.network, torch.tensor([4, 2])
    features_BSD = torch.randn(2, 4, network.reader.width)
    poisoned = features_BSD.clone()
    poisoned[1, 2:] = torch.nan
    found = []
    for each in (features_BSD, poisoned):
        network.reader.forward = lambda _, each=each: Memory(each, lengths_B)
        state = network.start(2, Source(torch.zeros(2, 4, dtype=torch.int64), lengths_B))
        found.append(network.read(torch.tensor([[3, 4], [5, 6]]), state)[0])
    assert torch.equal(*found)
    assert found[0].isfinite().all()


@pytest.mark.parametrize("name", ["lstm", "transformer"])
@pytest.mark.parametrize("joint", [True, False])
def test_every_weight_learns(name, joint):
    made = model(name, {}, joint)
    network = made.network.train()
    given = Source(torch.tensor(source([6, 2, 4]).ids_BS[:, :6] % 12 + 3), torch.tensor([6, 2, 4]))
    features_BTD, _ = network.read(torch.tensor(IDS), network.start(3, given))
    network.head.loss(features_BTD.flatten(0, 1), torch.tensor(IDS).flatten(), 0.1).backward()
    for key, weight in network.named_parameters():
        assert weight.grad is not None, key
        assert weight.grad.isfinite().all(), key
        assert weight.grad.abs().sum() > 0, key
    shared = network.reader.embedding is network.embedding
    assert shared == joint


def test_a_model_without_its_source_says_so():
    with pytest.raises(ConfigError, match="belongs to a source, and none was given"):
        model("gru", {}).start(1)


def test_unknown_contexts_are_refused():
    kind = catalog.find("translator", "lstm").Settings
    assert kind(context="attention+init").context == "init+attention"
    with pytest.raises(ValueError, match="init, every-step, attention"):
        kind(context="init+nothing")


def test_a_babbler_writes_every_word_without_reading_the_others():
    found, given = model("babble", {}), source([4])
    one, two = (found.step(np.array([word]), found.start(1, given))[0] for word in (3, 4))
    assert torch.equal(one, two)
    other = model("lstm", {})
    assert not torch.equal(*(other.step(np.array([word]), other.start(1, given))[0] for word in (3, 4)))


def weights(**given: object) -> int:
    return model("transformer", {"position": "t5", **given}).parameters


def test_sharing_and_tying_save_exactly_what_they_share():
    """The rows of the table about it: encoder, decoder, both; inputs, output, all or nothing."""
    V, D = vocabulary().target.vocab_size, 32
    table, plain = V * D, weights()
    assert weights(tied=False, share_inputs="yes") == plain + table  # tied inputs
    assert weights(tied=True, share_inputs="no") == plain + table  # tied decoder
    assert weights(tied=False, share_inputs="no") == plain + 2 * table
    one = weights() - weights(encoder_layers=1)
    assert weights(encoder_stack="shared") == plain - one
    both, decoder = weights(stack="shared"), weights(stack="shared", encoder_stack="plain")
    assert both == decoder - one
    assert weights(link="transparent") == plain + 3 * 2  # a number for each pair of a layer and a reader


def test_what_cannot_be_shared_or_linked_says_so():
    with pytest.raises(ConfigError, match=r"'model.share_inputs' is 'yes'.*'text.joint'"):
        model("transformer", {"share_inputs": "yes"}, joint=False)
    with pytest.raises(ConfigError, match=r"'model.link' is 'transparent'.*'model.encoder' is 'lstm'"):
        model("transformer", {"link": "transparent", "encoder": "lstm"})
    with pytest.raises(ConfigError, match=r"'model.link' is 'transparent'.*'model.encoder_stack' is 'f"):
        model("transformer", {"link": "transparent", "encoder_stack": "funnel", "position": "none"})
