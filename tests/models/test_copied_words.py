"""A decoder that copies: what it writes is mixed with the tokens that it looks at in its source."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_translators import IDS, LENGTHS, model, source, vocabulary

from nextword.blocks.copying import CopyHead
from nextword.core import catalog
from nextword.core.contracts import END, START, UNKNOWN, Source
from nextword.core.errors import ConfigError
from nextword.data.batches.batch import NOT_COUNTED
from nextword.data.batches.pairs import PairRows
from nextword.data.paired import same_tokens
from nextword.models.int8 import find_steps, use_int8
from nextword.models.seq2seq import TranslationTrainSettings
from nextword.tasks.translators import TranslationLoss

KINDS = [
    ("lstm", {}), ("gru", {"coverage": True}), ("lstm", {"attend": "after"}), ("transformer", {}),
]  # fmt: skip
every_kind = pytest.mark.parametrize(("name", "given"), KINDS, ids=[f"{name} {how}" for name, how in KINDS])


def copying(name: str, given: dict, joint: bool = True):
    return model(name, {"copying": True, **given}, joint)


def with_gate(made, bias: float):
    """The model with a gate that depends on nothing but its bias."""
    with torch.no_grad():
        made.network.copying.to_gate.weight.zero_()
        made.network.copying.to_gate.bias.fill_(bias)
    return made


@every_kind
def test_a_closed_gate_copies_what_the_decoder_looks_at(name, given):
    made, sources = with_gate(copying(name, given), -50.0), source([6, 2, 4])
    state = made.start(3, sources)
    p_BV = made.next(state).exp()
    looked_BS = made.attention(state) if name != "transformer" else last_layer(made, state)
    for row, length in enumerate((6, 2, 4)):
        expected_V = torch.zeros(made.vocab_size)
        for at in range(length):
            expected_V[sources.ids_BS[row, at]] += looked_BS[row, at]
        torch.testing.assert_close(p_BV[row], expected_V, atol=1e-6, rtol=1e-4)


def last_layer(made, state):
    cross, own = made.network._looking(state.inner.layers)[-1]
    return cross.looked(own).mean(dim=1)


@every_kind
def test_an_open_gate_writes_what_the_vocabulary_says(name, given):
    made = with_gate(copying(name, given), 50.0)
    state = made.start(2, source([6, 3]))
    with torch.inference_mode():
        expected_BV = made.network.head.head.log_probs(state.feature_BD[:, : made.network.width])
    torch.testing.assert_close(made.next(state), expected_BV, atol=1e-6, rtol=1e-5)


@every_kind
@pytest.mark.parametrize("joint", [True, False])
def test_probabilities_sum_to_one_and_the_impossible_stays_so(name, given, joint):
    made = copying(name, given, joint)
    ids_BS = source([6, 3]).ids_BS % 12 + 3
    ids_BS[0, 1] = UNKNOWN
    logp_NV, _ = made.distributions(IDS[:2], LENGTHS[:2], made.start(2, Source(ids_BS, np.array([6, 3]))))
    assert torch.allclose(logp_NV.exp().sum(dim=1), torch.ones(len(logp_NV)), atol=1e-5)
    assert (logp_NV[:, START] == -torch.inf).all()


def test_a_model_that_has_read_nothing_gives_a_distribution():
    made = copying("lstm", {})
    state = made.start(2, source([6, 3]), begin=False)
    assert torch.allclose(made.next(state).exp().sum(dim=1), torch.ones(2), atol=1e-5)
    logp_BT, _ = made.score(IDS[:2], LENGTHS[:2], state)
    assert logp_BT.isfinite().all()


def test_separate_vocabularies_copy_the_tokens_that_both_have():
    words = vocabulary(joint=False)
    found = same_tokens(words)
    for index in range(3, words.source.vocab_size):
        assert words.target.piece(found[index]) == words.source.piece(index)
    assert found[END] == END
    assert found[START] == -1
    swapped = same_tokens(type(words)(words.target, words.source))
    assert swapped[-1] == -1  # the other side has no such letter


@every_kind
def test_gradients_of_the_copied_share_agree_with_differences(name, given):
    network = copying(name, given).network.eval()
    given_source = Source(torch.tensor(source([6, 2, 4]).ids_BS), torch.tensor([6, 2, 4]))

    def nats() -> torch.Tensor:
        features_BTX, _ = network.read(torch.tensor(IDS), network.start(3, given_source))
        return network.head.loss(features_BTX.flatten(0, 1), torch.tensor(IDS).flatten(), 0.1)

    nats().backward()
    gate = network.copying.to_gate
    for weight, at in ((gate.bias, (0,)), (gate.weight, (0, 3)), (network.embedding.weight_VE, (5, 2))):
        moved = []
        with torch.no_grad():
            for step in (1e-2, -2e-2):
                weight[at] += step
                moved.append(float(nats()))
        assert float(weight.grad[at]) == pytest.approx((moved[0] - moved[1]) / 2e-2, rel=2e-2, abs=5e-3)


def test_the_loss_is_that_of_the_distributions():
    made = copying("transformer", {})
    network, targets_N = made.network, torch.tensor(IDS).flatten()
    given = Source(torch.tensor(source([6, 2, 4]).ids_BS), torch.tensor([6, 2, 4]))
    with torch.no_grad():
        features_NX = network.read(torch.tensor(IDS), network.start(3, given))[0].flatten(0, 1)
        head: CopyHead = network.head
        logp_NV = head.log_probs(features_NX)
        own_N = logp_NV.gather(1, targets_N[:, None])[:, 0]
        torch.testing.assert_close(head.score(features_NX, targets_N), own_N, atol=1e-5, rtol=1e-5)
        even_N = logp_NV[:, logp_NV[0].isfinite()].mean(dim=-1)
        expected = -(0.9 * own_N + 0.1 * even_N).sum()
        torch.testing.assert_close(head.loss(features_NX, targets_N, 0.1), expected, atol=1e-4, rtol=1e-5)


def rows(lengths: list[int]) -> PairRows:
    """Pairs of these target lengths, all of the same source length."""
    draw = np.random.default_rng(4)
    targets_BT = draw.integers(3, 15, (len(lengths), max(lengths)))
    inputs_BT = np.roll(targets_BT, 1, axis=1)
    inputs_BT[:, 0] = START
    targets_BT[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = NOT_COUNTED
    sources_BS = draw.integers(3, 15, (len(lengths), 5))
    return PairRows(sources_BS, np.full(len(lengths), 5), inputs_BT, targets_BT, np.array(lengths))


@torch.no_grad()
def test_coverage_costs_what_is_looked_at_again_in_real_positions_only():
    network = model("gru", {"coverage": True}).network
    of = TranslationLoss(TranslationTrainSettings(coverage_weight=0.5, smoothing=0.0, precision="fp32"))
    batch = rows([6, 2, 1])
    loss, _ = of(network, batch, None)
    again = 0.0
    for row, length in enumerate((6, 2, 1)):
        state = network.start(1, Source(torch.from_numpy(batch.source_BS[row : row + 1]), torch.tensor([5])))
        seen_S = torch.zeros(5)
        for t in range(length):
            _, state = network.read(torch.tensor([[batch.inputs_BT[row, t]]]), state)
            again += float(torch.minimum(state.weights_BS[0], seen_S).sum())
            seen_S = seen_S + state.weights_BS[0]
    assert float(loss.parts["coverage"]) == pytest.approx(0.5 * again, rel=1e-4)
    plain, _ = TranslationLoss(of.settings.model_copy(update={"coverage_weight": 0.0}))(network, batch, None)
    assert float(loss.total) == pytest.approx(float(plain.total) + 0.5 * again, rel=1e-5)
    nothing, _ = of(network, batch.blank(), None)
    assert float(nothing.parts["coverage"]) == 0.0


def test_coverage_changes_where_attention_looks_next():
    network = model("gru", {"coverage": True}).network
    given = Source(torch.tensor(source([6]).ids_BS), torch.tensor([6]))
    _, state = network.read(torch.tensor([[4]]), network.start(1, given))
    _, after = network.read(torch.tensor([[5]]), state)
    forgotten = state._replace(seen_BS=torch.zeros_like(state.seen_BS))
    _, other = network.read(torch.tensor([[5]]), forgotten)
    assert not torch.allclose(after.weights_BS, other.weights_BS, atol=1e-4)


@pytest.mark.parametrize("name", ["gru", "transformer"])
def test_words_that_were_never_written_are_copied(name):
    """Targets of training and of the last step have no word in common: only who copies can write them."""

    def nats_after_learning(copies: bool) -> float:
        torch.manual_seed(0)
        family, words = catalog.find("translator", name), vocabulary()
        given = {"hidden": 32, "layers": 1, "dropout": 0.0, "copying": copies}
        network = family.build(family.Settings(**given), words)
        learn = torch.optim.Adam(network.parameters(), 1e-2)
        draw = np.random.default_rng(0)
        for step in range(30):
            low, high = (3, 11) if step < 29 else (11, 20)
            words_BS = torch.from_numpy(draw.integers(low, high, (32, 4)))
            ids_BS = torch.cat([words_BS, torch.full((32, 1), END)], dim=1)
            inputs_BT = torch.cat([torch.full((32, 1), START), words_BS], dim=1)
            state = network.start(32, Source(ids_BS, torch.full((32,), 5)))
            features_BTX, _ = network.read(inputs_BT, state)
            loss = network.head.loss(features_BTX.flatten(0, 1), ids_BS.flatten()) / ids_BS.numel()
            learn.zero_grad()
            loss.backward()
            learn.step()
        return loss.item()

    assert nats_after_learning(True) < 0.5 * nats_after_learning(False)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"copying": True, "context": "init"}, "'copying' needs 'attention' in 'context', which is 'init'"),
        ({"coverage": True, "context": "init"}, "'coverage' needs 'attention' in 'context'"),
        ({"coverage": True, "attention": "dot"}, "'coverage' needs 'attention' mlp, and it is 'dot'"),
    ],
)
def test_what_needs_attention_says_so(given, says):
    with pytest.raises(ValueError, match=says):
        catalog.find("translator", "lstm").Settings(**given)


def test_further_tokens_are_not_copied():
    with pytest.raises(ConfigError, match=r"'model\.ahead' is 1, but 'model\.copying' is true"):
        copying("transformer", {"ahead": 1})
    with pytest.raises(ConfigError, match=r"'model\.encoder_stack' is 'funnel', which shortens it"):
        copying("transformer", {"encoder_stack": "funnel", "position": "none"})


@every_kind
def test_copying_works_in_int8(name, given):
    if not find_steps():
        pytest.skip("this machine has no int8 products")
    made, sources = copying(name, given), source([6, 2, 4])
    exact = made.next(made.start(3, sources))
    assert use_int8(made.network) == ""
    rough = made.next(made.start(3, sources))
    torch.testing.assert_close(rough.exp(), exact.exp(), atol=0.02, rtol=0.0)
    torch.testing.assert_close(rough.exp().sum(dim=1), torch.ones(3))
