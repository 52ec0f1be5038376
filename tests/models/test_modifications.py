"""Every modification of the catalog, at a tiny size: one contract, exact counts; the table's integers."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from modified_networks import LM, OTHERS, UNNORMED, V, every_row, network_of, settings
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nextword.blocks import losses
from nextword.blocks.cache import Reading
from nextword.models.counts import count
from nextword.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings
from nextword.models.encoder_decoder import count as count_both
from nextword.models.family import Unfilled, distinct
from nextword.models.modifications import PARTS, ROWS, SOURCE, TABLE, TARGET, VOCABULARY
from nextword.models.narang import count_of, settings_of
from nextword.models.network import NeuralLanguageModel
from nextword.models.parts import EncoderPartSettings
from nextword.models.transformer import TRANSFORMER

torch.set_num_threads(1)

T = 23
CLOSE = 6e-6  # of large numbers: float32 has 7 digits
# Parts of these compute in float32 whatever their weights are.
SINGLE = {
    "mixture-of-experts", "switch-transformer", "product-key-memory", "modern/latent-attention",
    "modern/differential", "modern/hyper-dynamic", "modern/ngpt", "modern/shared-experts",
    "modern/linear-attention", "modern/retnet", "modern/mamba2", "modern/gated-delta", "modern/mlstm",
    "modern/slstm", "modern/rwkv7", "modern/gated-linear",
}  # fmt: skip
ROWS_BY_NAME = {row.name: row for row in TABLE}
# Narang et al. 2021, table 1, with the exact integers of the code that was measured.
INTEGERS = {
    "Vanilla": 223_043_328, "GeLU": 223_043_328, "SwiGLU": 223_067_904, "LiGLU": 223_067_904,
    "RMS Norm": 222_995_712, "Rezero": 222_948_156, "Rezero + LayerNorm": 223_043_388,
    "Rezero + RMS Norm": 222_995_772, "Fixup": 222_856_083, "24 layers, ff 1536, H 6": 223_153_536,
    "18 layers, ff 2048, H 8": 223_098_368, "8 layers, ff 4608, H 18": 223_006_848,
    "6 layers, ff 6144, H 24": 222_988_800, "Block sharing": 65_882_880,
    "+ Factorized embeddings": 45_419_264, "+ Factorized & shared embeddings": 20_744_960,
    "Encoder only block sharing": 169_784_832, "Decoder only block sharing": 143_815_680,
    "Factorized Embedding": 227_254_016, "Factorized & shared embeddings": 202_579_712,
    "Tied encoder/decoder input embeddings": 247_717_632,
    "Tied decoder input and output embeddings": 247_717_632, "Untied embeddings": 272_391_936,
    "Adaptive input embeddings": 203_582_976, "Adaptive softmax": 203_675_392,
    "Adaptive softmax without projection": 223_045_632, "Mixture of softmaxes": 231_902_208,
    "Transparent attention": 223_043_484, "Dynamic convolution": 256_269_312,
    "Lightweight convolution": 223_300_608, "Evolved Transformer": 216_344_064,
    "Synthesizer (dense)": 224_615_936, "Synthesizer (dense plus)": 243_490_304,
    "Synthesizer (dense plus alpha)": 243_490_328, "Synthesizer (factorized)": 207_314_432,
    "Synthesizer (random)": 254_500_352, "Synthesizer (random plus)": 292_249_088,
    "Synthesizer (random plus alpha)": 292_249_112, "Universal Transformer": 83_625_984,
    "Mixture of experts": 647_841_024, "Switch Transformer": 1_100_825_856,
    "Funnel Transformer": 222_903_552, "Weighted Transformer": 279_676_512,
    "Product key memory": 420_959_488,
}  # fmt: skip
# Multiply-adds of one batch, in T, where they differ from vanilla's 9.087 and do not depend on the text.
PRODUCTS = {
    "Vanilla": 9.087, "+ Factorized embeddings": 9.095, "+ Factorized & shared embeddings": 8.796,
    "Mixture of softmaxes": 14.257, "Transparent attention": 9.095, "Dynamic convolution": 9.768,
    "Lightweight convolution": 8.444, "Evolved Transformer": 8.252, "Synthesizer (dense)": 9.375,
    "Synthesizer (dense plus)": 10.563, "Synthesizer (factorized)": 8.115, "Synthesizer (random)": 8.114,
    "Synthesizer (random plus)": 10.059, "Universal Transformer": 38.048, "Mixture of experts": 9.013,
    "Switch Transformer": 9.314, "Funnel Transformer": 5.785, "Weighted Transformer": 68.910,
    "Product key memory": 9.039,
}  # fmt: skip


def ids(rows: int = 3, columns: int = T) -> torch.Tensor:
    return torch.randint(3, V, (rows, columns), generator=torch.Generator().manual_seed(rows))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_row_has_exactly_the_parameters_of_the_table(row):
    expected = INTEGERS.get(row.row)
    if expected is None:
        expected = INTEGERS["SwiGLU"] if "glu" in row.name else INTEGERS["Vanilla"]
    found = count_of(row)
    assert found.weights == expected
    if row.row in PRODUCTS:
        assert found.products == pytest.approx(PRODUCTS[row.row] * 1e12, rel=1e-3)


def check_full_size(row: Any) -> None:
    with torch.device("meta"), Unfilled():
        network = EncoderDecoder(settings_of(row), VOCABULARY).train()
    assert sum(weight.numel() for weight in network.parameters()) == count_of(row).weights
    source, target = (torch.zeros(ROWS, size, dtype=torch.int64, device="meta") for size in (SOURCE, TARGET))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        features = network(source, torch.full((ROWS,), SOURCE), target)
        if "adaptive-softmax" not in row.name:  # its products depend on the text
            network.head.log_probs(features.flatten(0, 1))
            assert counter.get_total_flops() == 2 * count_of(row).products


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_row_at_full_size_has_the_weights_and_products_of_its_formula(row):
    check_full_size(row)


@every_row
def test_formula_counts_what_is_built_and_multiplied(name):
    network = network_of(name).train()
    expected = count(settings(name), V, 2, 9)
    assert sum(weight.numel() for weight in network.parameters()) == expected.weights
    assert TRANSFORMER.count_parameters(settings(name), V) == expected.weights
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        features, _ = network.read(ids(2, 9), network.start(2))
        network.head.log_probs(features.flatten(0, 1))
    has_lstm = name == "ablations/lstm-for-attention"  # torch's own layer, whose products are not counted
    if network.head.__class__.__name__ != "AdaptiveHead" and not has_lstm:  # log p needs more than the loss
        assert counter.get_total_flops() == 2 * expected.products


@every_row
def test_word_by_word_gives_what_reading_at_once_gives_whatever_stands_beside(name):
    model, words_BT, lengths_B = NeuralLanguageModel(network_of(name)), ids(), np.array([T, 9, 0])
    close: dict[str, float] = {"atol": 1e-5, "rtol": 1e-3 if name in UNNORMED else CLOSE}
    logp_BT, end = model.score(words_BT, lengths_B)
    state = model.start(3)
    for t in range(T):
        logp_BV = model.next(state)
        if t == 9:
            torch.testing.assert_close(model.next(end)[1], logp_BV[1], **close)
        for row in np.flatnonzero(lengths_B > t):
            found, expected = logp_BV[row, words_BT[row, t]], logp_BT[row, t]
            torch.testing.assert_close(found, expected, **close)
        _, state = model.step(words_BT[:, t], state)
    torch.testing.assert_close(model.next(state)[0], model.next(end)[0], **close)


@pytest.mark.parametrize("name", [name for name in [*LM, *OTHERS] if name not in SINGLE])
def test_with_doubles_word_by_word_agrees_with_reading_at_once_to_twelve_digits(name):
    network, words_BT = copy.deepcopy(network_of(name)).eval().double(), ids()
    with torch.inference_mode():
        features_BTD, _ = network.read(words_BT, network.start(3))
        one_by_one, state = [], network.start(3)
        for t in range(T):
            feature_B1D, state = network.read(words_BT[:, t : t + 1], state)
            one_by_one.append(feature_B1D)
    assert features_BTD.dtype == torch.float64
    largest = float(features_BTD.abs().max())
    torch.testing.assert_close(torch.cat(one_by_one, dim=1), features_BTD, atol=1e-12 * largest, rtol=0)


@every_row
def test_no_token_sees_what_comes_after_it(name):
    network, words_BT = network_of(name).eval(), ids(1, 10)
    with torch.inference_mode():
        before, _ = network.read(words_BT, network.start(1))
        words_BT[0, 6] = 3 + (words_BT[0, 6] - 2) % (V - 3)
        after, _ = network.read(words_BT, network.start(1))
    torch.testing.assert_close(after[0, :6], before[0, :6], atol=1e-6, rtol=0)
    assert not torch.allclose(after[0, 6:], before[0, 6:])


@every_row
def test_probabilities_sum_to_one_and_the_loss_is_their_logarithm(name):
    network, words_BT = network_of(name).eval(), ids(2, 8)
    features, _ = network.read(words_BT[:, :-1], network.start(2))
    features_ND, targets_N = features.flatten(0, 1).detach(), words_BT[:, 1:].flatten()
    logp_NV = network.head.log_probs(features_ND)
    torch.testing.assert_close(logp_NV.exp().sum(dim=-1), torch.ones(14), atol=1e-5, rtol=0)
    own_N = logp_NV.gather(1, targets_N[:, None])[:, 0]
    torch.testing.assert_close(network.head.score(features_ND, targets_N), own_N, atol=1e-5, rtol=0)
    loss = network.head.loss(features_ND, targets_N)
    torch.testing.assert_close(loss, -own_N.sum(), atol=1e-4, rtol=1e-5)


@every_row
def test_every_weight_learns_within_two_updates_and_is_saved_once(name):
    torch.manual_seed(0)
    network, words_BT = TRANSFORMER.build(settings(name), V, False), ids(4, 11)
    network.prepare(torch.arange(V).float())
    rule, moved = torch.optim.SGD(network.parameters(), 1e-3 if name in UNNORMED else 0.1), set()
    for _ in range(3):
        with losses.collecting() as found:
            features, _ = network.read(words_BT[:, :-1], network.start(4))
            network.foresee(features, words_BT[:, 1:], None)
        loss = network.head.loss(features.flatten(0, 1), words_BT[:, 1:].flatten()) / 40
        rule.zero_grad()
        sum(found.values(), loss).backward()
        rule.step()
        moved |= {key for key, weight in network.named_parameters() if weight.grad.abs().sum() > 0}
    assert moved == {key for key, _ in network.named_parameters()}
    saved = distinct(network.state_dict())
    assert sum(saved[key].numel() for key in saved if key in moved) == count(settings(name), V).weights
    other = TRANSFORMER.build(settings(name), V, False)
    other.load_state_dict(saved, strict=False)
    with torch.inference_mode():
        pair = [each.eval().read(words_BT, each.start(4))[0] for each in (network, other)]
    torch.testing.assert_close(*pair, atol=0, rtol=0)


# Layers that are the identity at first: a token predicts itself, with a score of about √D.
IDENTITY = {"rezero", "rezero-layernorm", "rezero-rms-norm", "fixup"}
NEARLY = {"weighted-transformer", "modern/ngpt", "modern/layerscale", "modern/deepnorm"}  # small steps
SOFTMAXES = {"adaptive-softmax": 2, "adaptive-softmax-wide": 2}  # a token's cluster, then the token


@every_row
def test_a_new_model_knows_nothing_and_says_so(name):
    """The first loss is ln V + ½ for each softmax, with scores of variance 1."""
    torch.manual_seed(0)
    network, words_BT = TRANSFORMER.build(settings(name), V, False).eval(), ids(6, 11)
    network.prepare(torch.ones(V))
    targets_N, expected = words_BT[:, 1:].flatten(), math.log(V - 2) + 0.5 * SOFTMAXES.get(name, 1)
    with torch.inference_mode():
        features, _ = network.read(words_BT[:, :-1], network.start(6))
        nats = float(network.head.loss(features.flatten(0, 1), targets_N)) / 60
        if name in IDENTITY:
            own = network.stack.finish(network.embedding(words_BT[:, :-1])) * network.output_scale
            expected = float(network.head.loss(own.flatten(0, 1), targets_N)) / 60
            assert nats == pytest.approx(expected, abs=1e-4)
    if name in UNNORMED:
        assert nats > expected  # its scores are not of variance 1
    else:
        assert nats == pytest.approx(expected, abs=1.5 if name in NEARLY else 0.6)


@pytest.mark.needs("bf16")
@every_row
def test_products_in_bfloat16_give_finite_gradients(name):
    torch.manual_seed(0)
    network, words_BT = TRANSFORMER.build(settings(name), V, False), ids(3, 9)
    network.prepare(torch.arange(V).float())
    with torch.autocast("cpu", torch.bfloat16), losses.collecting() as found:
        features, _ = network.read(words_BT[:, :-1], network.start(3))
        loss = network.head.loss(features.flatten(0, 1), words_BT[:, 1:].flatten())
    sum(found.values(), loss).backward()
    assert bool(torch.isfinite(loss))
    for key, weight in network.named_parameters():
        assert weight.grad is None or bool(torch.isfinite(weight.grad).all()), key


@pytest.mark.needs("bf16")
@every_row
def test_texts_past_the_context_are_read_in_bfloat16(name):
    """As a network is measured while it learns: rows of different lengths, windows from nothing."""
    model, lengths_B = NeuralLanguageModel(network_of(name)), np.array([T, 9, 0])
    with torch.autocast("cpu", torch.bfloat16):
        logp_BT, _ = model.score(ids(), lengths_B)
    exact_BT, _ = model.score(ids(), lengths_B)
    for row, length in enumerate(lengths_B):
        found, expected = logp_BT[row, :length].float(), exact_BT[row, :length]
        assert bool(torch.isfinite(found).all())
        assert float((found - expected).abs().sum()) <= 0.5 * length or name in UNNORMED


# How many tokens an expert gets, and when all have halted, is not known before.
ROUTED = {"mixture-of-experts", "switch-transformer", "universal-transformer", "modern/shared-experts"}
ROUTED |= {"modern/streaming"}  # nor how far a row has got
ROUTED |= {"ablations/lstm-for-attention"}  # torch's own layer, which counts threads


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's own tracer
@every_row
def test_compiled_layers_give_what_they_give_uncompiled(name):
    """One graph where nothing depends on the numbers."""
    torch.compiler.reset()
    network, T_ = network_of(name).eval(), 8
    x_BTD = torch.randn(2, T_, network.width)

    def run(x_BTD: torch.Tensor) -> torch.Tensor:
        reading = Reading([0, 0], [T_, T_], T_, T_, x_BTD.device)
        return network.stack(x_BTD, network.stack.start(2), reading)[0]

    compiled = torch.compile(run, backend="aot_eager", fullgraph=name not in ROUTED)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x_BTD), run(x_BTD), atol=1e-5, rtol=1e-4)


# Without norms, or with norms after the parts: clipped gradients, and a rate that rises and falls.
CAREFUL = {"fixup", "modern/post-norm"}


@pytest.mark.slow
@every_row
def test_one_batch_is_learned_by_heart(name):
    torch.manual_seed(0)
    network, words_BT = TRANSFORMER.build(settings(name), V, False), ids(2, 9)
    network.prepare(torch.ones(V))
    rule, nats = torch.optim.Adam(network.parameters(), 1e-2), 9.0
    for step in range(300):
        with losses.collecting() as found:
            features, _ = network.read(words_BT[:, :-1], network.start(2))
        loss = network.head.loss(features.flatten(0, 1), words_BT[:, 1:].flatten()) / 16
        rule.zero_grad()
        sum(found.values(), loss).backward()
        if name in CAREFUL or name.startswith("ablations/"):
            torch.nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            rule.param_groups[0]["lr"] = 1e-2 * min(1.0, (step + 1) / 50) * (1 - step / 300)
        rule.step()
        nats = min(nats, float(loss.detach()))
    assert nats < 0.1


BOTH = ["vanilla", "fixup", "block-sharing", "dynamic-convolution", "evolved-transformer"]
BOTH += [
    "weighted-transformer",
    "synthesizer-dense-plus",
    "universal-transformer",
    "mixture-of-experts",
    "product-key-memory",
]


def both(name: str, **whole: Any) -> tuple[EncoderDecoderSettings, EncoderDecoder]:
    own = {
        key: value
        for key, value in ROWS_BY_NAME[name].sets.items()
        if key in EncoderPartSettings.model_fields
    }
    side = PARTS | {"layers": 6, "hidden": 24, "heads": 12, "head_size": 4, "inner": 32, "context": 12} | own
    made = EncoderDecoderSettings(encoder=side, decoder=side | {"order": "AXF"}, **whole)
    torch.manual_seed(0)
    network = EncoderDecoder(made, V).eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return made, network


@pytest.mark.parametrize("name", BOTH)
def test_an_encoder_decoder_has_the_row_on_both_sides(name):
    """The decoder sees nothing ahead, the encoder everything, and padding of a source changes nothing."""
    made, network = both(name)
    assert sum(weight.numel() for weight in network.parameters()) == count_both(made, V, 2, 7, 5).weights
    source, lengths_B, target = ids(2, 7), torch.tensor([7, 4]), ids(2, 5)
    with torch.inference_mode():
        features = network(source, lengths_B, target)
        alone = network(source[1:, :4], torch.tensor([4]), target[1:])
        torch.testing.assert_close(features[1], alone[0], atol=1e-5, rtol=1e-4)
        encoded = network.encode(source, torch.tensor([7, 7]))[-1]
        source[0, 6] = 5 + (source[0, 6] - 4) % 30
        assert not torch.allclose(network.encode(source, torch.tensor([7, 7]))[-1][0, 0], encoded[0, 0])
        changed = target.clone()
        changed[:, 3] = 5 + (changed[:, 3] - 4) % 30
        again = network(ids(2, 7), lengths_B, changed)
    torch.testing.assert_close(again[:, :3], features[:, :3], atol=1e-6, rtol=0)
    assert not torch.allclose(again[:, 3:], features[:, 3:])
