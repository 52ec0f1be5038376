"""Newer parts: read word by word as at once, counted by formula; what each is when its share is nothing."""

from __future__ import annotations

import resource
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nextword.blocks import losses, rwkv
from nextword.blocks.attention import Attention
from nextword.blocks.cache import Reading
from nextword.blocks.gated_linear import GatedLinearAttention
from nextword.blocks.heads import SoftmaxHead, square_normalizers
from nextword.blocks.hyper import DynamicHyperConnections, HyperConnections
from nextword.blocks.linear_mixers import RetNet
from nextword.blocks.places import deep
from nextword.blocks.positions import NoPosition, Rotary
from nextword.blocks.rotary import RotarySettings
from nextword.blocks.shape import Shape
from nextword.blocks.state_space import GatedDelta
from nextword.blocks.states import leaves
from nextword.blocks.weighing import Sink, Softmax
from nextword.blocks.window import WindowAttention, WindowedSettings
from nextword.blocks.xlstm import Remembered, chunk
from nextword.core.errors import ConfigError
from nextword.models import transformer
from nextword.models.counts import count
from nextword.models.network import NeuralLanguageModel
from nextword.models.training import NeuralTrainSettings
from nextword.models.transformer import TRANSFORMER, TransformerSettings
from nextword.training.optimizers import make_optimizer
from nextword.training.update import settle

V, T = 30, 14
MIXERS = [
    "window",
    "differential",
    "latent",
    "value-residual",
    "linear",
    "retnet",
    "mamba2",
    "delta",
    "rwkv7",
]
MIXERS += ["lstm", "gru", "mingru", "minlstm", "sru", "qrnn", "mlstm", "slstm"]
CASES: dict[str, dict[str, Any]] = {name: {"mixer": name} for name in MIXERS}
CASES |= {name: {"weighing": name} for name in ("softcap", "sink", "off-by-one", "talking-heads", "sigmoid")}
CASES |= {name: {"norm_place": name} for name in ("sandwich", "peri", "output", "deepnorm")}
CASES |= {"parallel": {"block": "parallel"}}
CASES |= {name: {"connections": name} for name in ("hyper", "hyper-dynamic")}
CASES |= {name: {"position": name} for name in ("t5-content", "shaw")}
CASES |= {
    f"rope-{name}": {"rotary": {"scaling": name, "factor": 2.0}}
    for name in ("linear", "ntk", "yarn", "llama3")
}
CASES["deepnorm"] |= {"init": "deepnorm"}
CASES["ngpt"] = {
    "connections": "sphere", "norm": "none", "qk_norm": "sphere", "scale": "grow", "ffn": "sphere",
    "stack": "sphere", "embedding_kind": "sphere", "head": "sphere", "init": "sphere",
}  # fmt: skip
CASES["mup"] = {"base_width": 8, "scale": "linear", "init": "mup"}
CASES["shared-experts"] = {"ffn": "experts", "experts": {"count": 3, "shared": 2}}
CASES["window"] |= {"windowed": {"width": 4}, "position": "t5"}
UNCOUNTED = {"lstm", "gru"}  # torch's own layers, whose products are not counted one by one
CASES["sinks"] = {"mixer": "window", "windowed": {"width": 4, "first": 2}}
SHAPE = Shape(16, 1, 2, 2, 8, 32, 16, bias=False)


@pytest.mark.parametrize("name", CASES)
def test_word_by_word_as_at_once_and_as_many_weights_as_the_formula_says(name):
    torch.manual_seed(0)
    values = {"layers": 2, "hidden": 16, "heads": 2, "context": 10, "init": "gpt2"} | CASES[name]
    settings = TransformerSettings(**values)
    network = TRANSFORMER.build(settings, V, False).eval()
    expected = count(settings, V, 2, 9)
    assert sum(weight.numel() for weight in network.parameters()) == expected.weights
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        features, _ = network.read(torch.zeros(2, 9, dtype=torch.int64), network.start(2))
        network.head.log_probs(features.flatten(0, 1))
    if name not in UNCOUNTED:
        assert counter.get_total_flops() == 2 * expected.products
    ids_BT = torch.randint(3, V, (2, T))
    with torch.inference_mode():
        ragged, _ = network.read(ids_BT, network.start(2), torch.tensor([T, 7]))
        state = network.start(2)
        for t in range(T):
            one, state = network.read(ids_BT[:, t : t + 1], state)
            torch.testing.assert_close(one[0, 0], ragged[0, t], atol=1e-5, rtol=1e-4)
            if t < 7:
                torch.testing.assert_close(one[1, 0], ragged[1, t], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_nothing_ahead_is_seen_and_every_weight_learns(name):
    torch.manual_seed(0)
    values = {"layers": 2, "hidden": 16, "heads": 2, "context": 10, "init": "gpt2"} | CASES[name]
    network, ids_BT = TRANSFORMER.build(TransformerSettings(**values), V, False), torch.randint(3, V, (2, 8))
    features, _ = network.read(ids_BT, network.start(2))
    changed_BT = ids_BT.clone()
    changed_BT[:, 5] = 3 + (ids_BT[:, 5] - 2) % (V - 3)
    others, _ = network.read(changed_BT, network.start(2))
    torch.testing.assert_close(others[:, :5], features[:, :5], atol=1e-6, rtol=1e-5)
    assert not torch.allclose(others[:, 5], features[:, 5])
    network.head.loss(features[:, :-1].flatten(0, 1), ids_BT[:, 1:].flatten()).backward()
    idle = [key for key, weight in network.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert not idle


def reading(columns: int) -> Reading:
    return Reading([0], [columns], columns, 16, torch.device("cpu"))


def test_a_window_as_wide_as_the_text_is_plain_attention_and_a_narrow_one_forgets():
    shape = Shape(16, 1, 2, 2, 8, 32, 16, bias=False, options=(WindowedSettings(width=4),))
    narrow, plain = WindowAttention(shape, NoPosition(shape)), Attention(shape, NoPosition(shape))
    plain.load_state_dict(narrow.state_dict())
    x_BTD = torch.randn(1, 12, 16)
    found, state = narrow(x_BTD, narrow.start(1), reading(12))
    expected, _ = plain(x_BTD[:, :4], plain.start(1), reading(4))
    torch.testing.assert_close(found[:, :4], expected)
    alone, _ = plain(x_BTD[:, 8:], plain.start(1), reading(4))
    torch.testing.assert_close(found[:, -1], alone[:, -1])
    assert state.keys.last_BSC.shape[1] == 3  # whatever the length


def test_first_tokens_stay_visible_at_the_distance_of_a_full_window():
    shape = Shape(16, 1, 2, 2, 8, 32, 16, bias=False, options=(WindowedSettings(width=4, first=2),))
    position = Rotary(shape)
    part, plain = WindowAttention(shape, position), Attention(shape, position)
    plain.load_state_dict(part.state_dict())
    x_BTD = torch.randn(1, 12, 16)
    found, state = part(x_BTD, part.start(1), reading(12))
    kept = torch.cat([x_BTD[:, :2], x_BTD[:, 8:]], dim=1)  # as a text of its own
    expected, _ = plain(kept, plain.start(1), reading(6))
    torch.testing.assert_close(found[:, -1], expected[:, -1])
    assert state.keys.last_BSC.shape[1] == 3
    assert state.sinks.keys_BNSK.shape[2] == 2


def test_a_sink_that_nobody_looks_at_is_a_softmax():
    scores = torch.randn(1, 2, 5, 5)
    sink = Sink(SHAPE)
    assert (sink(scores, None).sum(dim=-1) < 1).all()
    torch.nn.init.constant_(sink.sink_N, -torch.inf)
    torch.testing.assert_close(sink(scores, None), Softmax(SHAPE)(scores, None))


def test_retention_is_attention_without_a_softmax_whose_weights_fall_with_distance():
    part = RetNet(SHAPE, NoPosition(SHAPE))
    q, k, v = (torch.randn(1, 2, 6, 8) for _ in range(3))
    decay_BNT = part.log_gamma_N[None, :, None].expand(1, 2, 6)
    found, _ = part.chunk(q, k, v, decay_BNT, torch.ones(1, 2, 6), torch.zeros(1, 2, 8, 8))
    distance = torch.arange(6)[:, None] - torch.arange(6)
    weights = torch.where(distance >= 0, part.log_gamma_N[:, None, None].exp() ** distance.clamp(min=0), 0.0)
    torch.testing.assert_close(found, ((q @ k.transpose(-2, -1)) * weights) @ v)


def test_the_delta_rule_recalls_exactly_what_was_written_at_a_key():
    part = GatedDelta(SHAPE, NoPosition(SHAPE))
    keys = torch.eye(8)[None, None].expand(1, 2, 8, 8)
    v, none, ones = torch.randn(1, 2, 8, 8), torch.zeros(1, 2, 8), torch.ones(1, 2, 8)
    _, state = part.chunk(keys, keys, v, none, ones, torch.zeros(1, 2, 8, 8))
    torch.testing.assert_close(state, v)
    _, same = part.chunk(keys, keys, v + 1, none, none, state)  # nothing is written
    torch.testing.assert_close(same, v)


def test_the_delta_rule_for_a_chunk_is_the_rule_token_by_token():
    part = GatedDelta(SHAPE, NoPosition(SHAPE))
    q, k, v = (torch.randn(1, 2, 9, 8) for _ in range(3))
    decay, share, before = -torch.rand(1, 2, 9), torch.rand(1, 2, 9), torch.randn(1, 2, 8, 8)
    found, after = part.chunk(q, k, v, decay, share, before)
    for t in range(9):
        before = before * decay[..., t, None, None].exp()
        old = (k[:, :, t, :, None] * before).sum(dim=2)
        before = before + k[:, :, t, :, None] * (share[..., t, None] * (v[:, :, t] - old))[:, :, None]
        one = (q[:, :, t, :, None] * before).sum(dim=2)
        torch.testing.assert_close(found[:, :, t], one, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(after, before, atol=1e-4, rtol=1e-4)


def test_gated_linear_attention_for_a_chunk_is_its_rule_token_by_token():
    part = GatedLinearAttention(SHAPE, NoPosition(SHAPE))
    q, k, v = (torch.randn(1, 2, 9, 8) for _ in range(3))
    decay_BXT, share, before = -torch.rand(1, 16, 9), torch.ones(1, 2, 9), torch.randn(1, 2, 8, 8)
    found, after = part.chunk(q, k, v, decay_BXT, share, before)
    for t in range(9):
        before = before * decay_BXT[:, :, t].exp().view(1, 2, 8, 1) + k[:, :, t, :, None] * v[:, :, t, None]
        torch.testing.assert_close((q[:, :, t, None] @ before)[..., 0, :], found[:, :, t])
    torch.testing.assert_close(before, after)


def test_rwkv_for_a_chunk_is_its_rule_token_by_token():
    """S(t) = Diag(w) S(t-1) - (a ∘ k̂) k̂ᵀ S(t-1) + k vᵀ, o = Sᵀ r, also with the smallest decays."""
    torch.manual_seed(0)
    r, k, v = (torch.randn(1, 2, 32, 8, dtype=torch.float64) for _ in range(3))
    log_w = -torch.rand(1, 2, 32, 8, dtype=torch.float64) * 0.6065
    log_w[:, 1] = -0.6065
    gone = torch.nn.functional.normalize(torch.randn_like(r), dim=-1)
    back, before = gone * torch.rand_like(r), torch.randn(1, 2, 8, 8, dtype=torch.float64)
    found, after = rwkv.chunk(before, r, log_w, k, v, gone, back)
    state = before
    for t in range(32):
        forgotten = gone[:, :, t, None] @ state
        state = log_w[:, :, t].exp()[..., None] * state - back[:, :, t, :, None] * forgotten
        state = state + k[:, :, t, :, None] * v[:, :, t, None]
        torch.testing.assert_close((r[:, :, t, None] @ state)[..., 0, :], found[:, :, t])
    torch.testing.assert_close(state, after)
    single = rwkv.chunk(*(part.float() for part in (before, r, log_w, k, v, gone, back)))
    for part, exact in zip(single, (found, after), strict=True):
        assert (part - exact).abs().max() < 2e-6 * exact.abs().max()


def test_rwkv_recalls_exactly_what_was_written_last_at_a_key():
    keys = torch.eye(8)[None, None].expand(1, 2, 8, 8)
    old, new, kept = torch.randn(1, 2, 8, 8), torch.randn(1, 2, 8, 8), torch.zeros(1, 2, 8, 8)
    _, state = rwkv.chunk(torch.zeros(1, 2, 8, 8), keys, kept, keys, old, keys, keys)
    _, state = rwkv.chunk(state, keys, kept, keys, new, keys, keys)  # a = 1 and w = 1: the old value goes
    torch.testing.assert_close(state, new)


def test_rotary_scores_see_distances_only_also_when_stretched():
    for scaling in ("linear", "ntk", "yarn", "llama3"):
        own = RotarySettings(scaling=scaling, factor=4.0)
        part = Rotary(Shape(16, 1, 1, 1, 16, 32, 64, options=(own,)))
        q, k = torch.randn(1, 1, 1, 16), torch.randn(1, 1, 1, 16)
        near = (part.turn(q, slice(9, 10)) * part.turn(k, slice(4, 5))).sum()
        far = (part.turn(q, slice(50, 51)) * part.turn(k, slice(45, 46))).sum()
        torch.testing.assert_close(near, far, atol=1e-4, rtol=1e-4)


def test_deepnorm_has_the_constants_of_its_paper():
    layers = Shape(16, 12, 2, 2, 8, 32, 16)
    assert deep(layers) == pytest.approx((2.2134, 0.3195), abs=1e-4)
    assert deep(replace(layers, readers=12)) == pytest.approx((1.7609, 0.4002), abs=1e-4)
    assert deep(replace(layers, source_width=16)) == pytest.approx((2.4495, 0.2887), abs=1e-4)


@pytest.mark.parametrize(("place", "same"), [("peri", True), ("sandwich", False)])
def test_with_peri_norm_the_length_of_embeddings_does_not_matter(place, same):
    torch.manual_seed(0)
    values = {"layers": 2, "hidden": 16, "heads": 2, "context": 10, "norm_place": place, "tied": False}
    network = TRANSFORMER.build(TransformerSettings(**values), V, False).eval().double()
    ids_BT = torch.randint(3, V, (2, 8))
    before, _ = network.read(ids_BT, network.start(2))
    with torch.no_grad():
        network.embedding.weight_VE.mul_(3.0)
    after, _ = network.read(ids_BT, network.start(2))
    assert torch.allclose(before, after, atol=1e-3) == same


def test_dynamic_shares_of_nothing_are_the_static_ones():
    part, stream, y = DynamicHyperConnections(16, 16), torch.randn(1, 3, 64), torch.randn(1, 3, 16)
    torch.nn.init.zeros_(part.scale_3)
    torch.testing.assert_close(part.look(stream), HyperConnections.look(part, stream))
    torch.testing.assert_close(part(stream, y), HyperConnections.forward(part, stream, y))


def lengths(weight: torch.Tensor, dim: int) -> torch.Tensor:
    return weight.detach().norm(dim=dim)


def test_everything_of_ngpt_stays_on_the_sphere():
    values = {"layers": 2, "hidden": 16, "heads": 2, "context": 10} | CASES["ngpt"]
    network, ids_BT = TRANSFORMER.build(TransformerSettings(**values), V, False), torch.randint(3, V, (2, 8))
    rule = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(3):
        features, _ = network.read(ids_BT, network.start(2))
        rule.zero_grad()
        network.head.loss(features[:, :-1].flatten(0, 1), ids_BT[:, 1:].flatten()).backward()
        rule.step()
        settle(network)
    torch.testing.assert_close(lengths(features, -1), torch.ones(2, 8))
    block = network.stack.blocks[0]
    mixer, ffn = block.mixer, block.ffn
    for weight, dim in ((mixer.from_x.weight, 1), (mixer.out.weight, 0), (ffn.out.weight, 0)):
        torch.testing.assert_close(lengths(weight, dim), torch.ones(weight.shape[1 - dim]))
    torch.testing.assert_close(lengths(network.embedding.weight_VE, 1), torch.ones(V))


def test_gates_of_an_mlstm_may_grow_together_and_nothing_changes():
    """A constant in the logarithm of what is written cancels, once it outweighs 1 in the denominator."""
    q, k, v = (torch.randn(1, 2, 6, 8) for _ in range(3))
    write, keep = torch.randn(1, 2, 6) + 20, -torch.rand(1, 2, 6)
    none = Remembered(torch.zeros(1, 2, 8, 9), torch.zeros(1, 2))
    found, _ = chunk(q, k, v, write, keep, none)
    more, _ = chunk(q, k, v, write + 50, keep, none)
    torch.testing.assert_close(more, found, atol=1e-4, rtol=1e-3)
    assert bool(torch.isfinite(more).all())


def grown(width: int, rate: float, **values: Any) -> float:
    """How much five updates change the scores of tokens."""
    torch.manual_seed(0)
    base = {"layers": 2, "hidden": width, "head_size": 8, "context": 16, "qk_norm": "none"}
    settings = TransformerSettings(**base | {"heads": width // 8} | values)
    network = TRANSFORMER.build(settings, V, False)
    ids_BT = torch.randint(3, V, (4, 16), generator=torch.Generator().manual_seed(1))
    optimizer = make_optimizer(network, NeuralTrainSettings(rate=rate, precision="fp32"))
    before = None
    for _ in range(6):
        features, _ = network.read(ids_BT, network.start(4))
        logits_NV = features.flatten(0, 1) @ network.embedding.weight_VE.T
        before = logits_NV.detach() if before is None else before
        optimizer.clear()
        network.head.loss(features[:, :-1].flatten(0, 1), ids_BT[:, 1:].flatten()).backward()
        optimizer.step(rate)
    return float((logits_NV.detach() - before).square().mean().sqrt())


def test_with_mup_an_update_changes_as_much_at_every_width():
    """The coordinate check (Yang et al. 2022): plain parametrization grows with the width."""
    mup = {"base_width": 16, "scale": "linear", "init": "mup"}
    ratio = grown(128, 5e-3, **mup) / grown(16, 5e-3, **mup)
    plain = grown(128, 5e-3, init="gpt2") / grown(16, 5e-3, init="gpt2")
    assert 0.5 < ratio < 1.6
    assert plain > 1.5 * ratio


def test_mup_without_its_scale_is_refused_in_one_sentence():
    with pytest.raises(ConfigError, match=r"'model.base_width' is 8.*'model.scale' is 'sqrt'"):
        TransformerSettings(base_width=8)


def test_further_tokens_are_learned_from_features_and_do_not_change_the_model():
    settings = TransformerSettings(layers=1, hidden=16, heads=2, context=10, ahead=2, init="gpt2")
    network, ids_BT = TRANSFORMER.build(settings, V, False), torch.randint(3, V, (2, 9))
    assert sum(weight.numel() for weight in network.parameters()) == count(settings, V).weights
    features, _ = network.read(ids_BT[:, :-1], network.start(2))
    resets = np.zeros((2, 8), dtype=bool)
    resets[:, 4] = True
    with losses.collecting() as found:
        network.foresee(features, ids_BT[:, 1:], resets)
    assert set(found) == {"ahead 2", "ahead 3"}
    kept = [0, 1, 2, 4, 5, 6]  # a document begins at 4: what is before it does not predict what is after
    targets = ids_BT[:, 2:][:, kept].flatten()
    nats = network.head.loss(network.further[0](features[:, kept]).flatten(0, 1), targets) / 12
    torch.testing.assert_close(found["ahead 2"], 0.3 * nats)
    sum(found.values()).backward()
    assert all(weight.grad is not None for weight in network.further.parameters())


def test_the_z_loss_is_the_square_of_the_normalizer_and_pushes_it_to_zero():
    head, features = SoftmaxHead(8, V, (0,)), torch.randn(5, 8)
    found = square_normalizers(head, features)
    expected = head.logits(features).logsumexp(dim=-1).square().sum()
    torch.testing.assert_close(found, expected)
    found.backward()
    with torch.no_grad():
        head.bias_V -= 0.01 * head.bias_V.grad
    assert square_normalizers(head, features) < found
    with pytest.raises(ConfigError, match=r"'train.z_loss'.*'model.head'"):
        square_normalizers(torch.nn.Linear(1, 1), features)


BOUNDED = [
    "window",
    "linear",
    "retnet",
    "gla",
    "mamba2",
    "delta",
    "rwkv7",
    "mlstm",
    "sru",
    "mingru",
    "lightconv",
]


@pytest.mark.parametrize("mixer", BOUNDED)
def test_a_text_without_end_is_read_with_a_state_that_does_not_grow(mixer, monkeypatch):
    """Pieces of any size give the same, far past the context [MAUSAM "What is missing in Transformers"]."""
    monkeypatch.setattr(transformer, "POSITIONS", 50)
    torch.manual_seed(0)
    options = {"windowed": {"width": 6, "first": 2}} if mixer == "window" else {}
    values = {"layers": 2, "hidden": 16, "heads": 2, "context": 8, "init": "gpt2", "endless": True}
    network = TRANSFORMER.build(TransformerSettings(**values, mixer=mixer, **options), V, False).eval()
    ids_BT, sizes = torch.randint(3, V, (2, 130)), []
    assert network.context is None
    with torch.inference_mode():
        at_once, _ = network.read(ids_BT, network.start(2), torch.tensor([130, 90]))
        state, at = network.start(2), 0
        for size in (1, 40, 7, 82):
            part, state = network.read(ids_BT[:, at : at + size], state)
            torch.testing.assert_close(part[0], at_once[0, at : at + size], atol=1e-4, rtol=1e-3)
            at += size
            sizes.append(sum(each.numel() for each in leaves(state)))
    torch.testing.assert_close(at_once[1, 89], network.read(ids_BT[1:, :90], network.start(1))[0][0, -1])
    assert len(set(sizes)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mixer", BOUNDED)
def test_131072_tokens_are_scored_in_bounded_memory(mixer):
    torch.manual_seed(0)
    values = {"layers": 1, "hidden": 16, "heads": 2, "context": 128, "init": "gpt2", "endless": True}
    model = NeuralLanguageModel(TRANSFORMER.build(TransformerSettings(**values, mixer=mixer), V, False))
    ids_T = np.random.default_rng(0).integers(3, V, 131_072)
    state, total, before = model.start(1), 0.0, 0
    for at in range(0, len(ids_T), 4096):
        logp_BT, state = model.score(ids_T[None, at : at + 4096], np.array([4096]), state)
        total += float(logp_BT.sum())
        before = before or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kB, after the first piece
    assert 1.0 < -total / len(ids_T) < 10.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


def test_reading_on_needs_a_state_that_does_not_grow():
    with pytest.raises(ConfigError, match=r"'model.endless' is true, but 'model.mixer' is 'attention'"):
        TransformerSettings(endless=True)
    with pytest.raises(ConfigError, match=r"'model.endless' is true, but 'model.position' is 'learned'"):
        TransformerSettings(endless=True, mixer="retnet", position="learned")
