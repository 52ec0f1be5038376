"""Equal weights, equal features: our parts against those of `transformers`, one by one, in float32."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nextword.blocks.cache import Reading
from nextword.blocks.experts import ExpertSettings, Switch
from nextword.blocks.funnel import Funnel, FunnelSettings
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.blocks.stack import SharedStack
from nextword.blocks.state_space import GatedDelta, Mamba2, StateSpaceSettings
from nextword.blocks.xlstm import MLSTM
from nextword.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings

pytestmark = [pytest.mark.agree, pytest.mark.needs("transformers"), pytest.mark.slow]
V, D, N, T = 23, 24, 4, 13


def load(part: torch.nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Fill a part; no weight may be missing."""
    own = dict(part.named_parameters())
    assert set(own) == set(weights)
    with torch.no_grad():
        for name, weight in weights.items():
            own[name].copy_(weight)


def random(theirs: torch.nn.Module, seed: int = 0) -> dict[str, torch.Tensor]:
    """Return their weights, all random: what begins as 0 or 1 would hide mistakes."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)
    return dict(theirs.eval().state_dict())


def reading(columns: int, rows: int = 2) -> Reading:
    return Reading([0] * rows, [columns] * rows, columns, columns, torch.device("cpu"))


def agree(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def one_by_one(mixer: Any, x_BTD: torch.Tensor) -> torch.Tensor:
    """Read token by token."""
    state, found = mixer.start(len(x_BTD)), []
    for t in range(x_BTD.shape[1]):
        own = Reading([t] * len(x_BTD), [1] * len(x_BTD), 1, T, torch.device("cpu"))
        y_BTD, state = mixer(x_BTD[:, t : t + 1], state, own)
        found.append(y_BTD)
    return torch.cat(found, dim=1)


def test_t5_encoder_and_decoder_with_relative_positions():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=V, d_model=D, d_kv=8, d_ff=40, num_layers=2, num_decoder_layers=3, num_heads=N,
        relative_attention_num_buckets=8, relative_attention_max_distance=10, dropout_rate=0.0,
        feed_forward_proj="relu", tie_word_embeddings=True, decoder_start_token_id=0,
    )  # fmt: skip
    theirs = T5ForConditionalGeneration(config)
    found = random(theirs)
    side = {
        "hidden": D, "heads": N, "head_size": 8, "inner": 40, "context": 32, "position": "t5",
        "buckets": {"count": 8, "farthest": 10}, "norm": "rmsnorm", "norm_eps": 1e-6, "qk_norm": "none",
        "ffn": "relu", "scale": "none", "bias": False, "init": "t5",
    }  # fmt: skip
    settings = EncoderDecoderSettings(encoder=side | {"layers": 2}, decoder=side | {"layers": 3})
    ours = EncoderDecoder(settings, V).eval()
    bias = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    weights = {
        "source_embedding.weight_VE": found["shared.weight"],
        "source_position.table_NX": found[f"encoder.{bias}"].T,
        "position.table_NX": found[f"decoder.{bias}"].T,
        "source_stack.norm.gain_D": found["encoder.final_layer_norm.weight"],
        "stack.norm.gain_D": found["decoder.final_layer_norm.weight"],
    }
    for stack, side_, layers in (("source_stack", "encoder", 2), ("stack", "decoder", 3)):
        parts = ["SelfAttention", "DenseReluDense"] if side_ == "encoder" else None
        parts = parts or ["SelfAttention", "EncDecAttention", "DenseReluDense"]
        for layer in range(layers):
            for at, part in enumerate(parts):
                prefix = f"{side_}.block.{layer}.layer.{at}."
                name = {"SelfAttention": "mixer", "EncDecAttention": "cross", "DenseReluDense": "ffn"}[part]
                own = f"{stack}.blocks.{layer}."
                weights[f"{own}around_{name}.norm.gain_D"] = found[f"{prefix}layer_norm.weight"]
                if name == "ffn":
                    weights[f"{own}ffn.inner.weight"] = found[f"{prefix}{part}.wi.weight"]
                    weights[f"{own}ffn.out.weight"] = found[f"{prefix}{part}.wo.weight"]
                    continue
                q, k, v, out = (found[f"{prefix}{part}.{each}.weight"] for each in "qkvo")
                weights[f"{own}{name}.out.weight"] = out
                weights[f"{own}{name}.from_x.weight"] = torch.cat([q, k, v]) if name == "mixer" else q
                if name == "cross":
                    weights[f"{own}cross.from_source.weight"] = torch.cat([k, v])
    load(ours, weights)
    source, target = torch.randint(0, V, (2, T)), torch.randint(0, V, (2, 9))
    with torch.no_grad():
        expected = theirs(input_ids=source, decoder_input_ids=target).logits
        logp = ours.head.log_probs(ours(source, torch.full((2,), T), target).flatten(0, 1))
    agree(logp, expected.log_softmax(dim=-1).flatten(0, 1))


def test_albert_applies_one_layer_again_and_again():
    from transformers import AlbertConfig
    from transformers.models.albert.modeling_albert import AlbertTransformer

    config = AlbertConfig(
        hidden_size=D, embedding_size=D, num_hidden_layers=3, num_attention_heads=N, intermediate_size=40,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, hidden_act="gelu_new",
    )  # fmt: skip
    theirs = AlbertTransformer(config)
    found = random(theirs)
    with torch.no_grad():  # what comes before the layers is no part of ours
        theirs.embedding_hidden_mapping_in.weight.copy_(torch.eye(D))
        theirs.embedding_hidden_mapping_in.bias.zero_()
    shape = Shape(
        D, 3, N, N, D // N, 40, 32, norm="layernorm", norm_eps=config.layer_norm_eps, norm_place="post",
        ffn="gelu-tanh", causal=False,
    )  # fmt: skip
    ours = SharedStack(shape, NoPosition(shape)).eval()
    prefix = "albert_layer_groups.0.albert_layers.0."
    qkv = ("query", "key", "value")
    weights = {
        "blocks.0.ffn.inner.weight": found[f"{prefix}ffn.weight"],
        "blocks.0.ffn.inner.bias": found[f"{prefix}ffn.bias"],
        "blocks.0.ffn.out.weight": found[f"{prefix}ffn_output.weight"],
        "blocks.0.ffn.out.bias": found[f"{prefix}ffn_output.bias"],
        "blocks.0.mixer.out.weight": found[f"{prefix}attention.dense.weight"],
        "blocks.0.mixer.out.bias": found[f"{prefix}attention.dense.bias"],
        "blocks.0.around_mixer.norm.gain_D": found[f"{prefix}attention.LayerNorm.weight"],
        "blocks.0.around_mixer.norm.bias_D": found[f"{prefix}attention.LayerNorm.bias"],
        "blocks.0.around_ffn.norm.gain_D": found[f"{prefix}full_layer_layer_norm.weight"],
        "blocks.0.around_ffn.norm.bias_D": found[f"{prefix}full_layer_layer_norm.bias"],
    }
    for kind in ("weight", "bias"):
        rows = [found[f"{prefix}attention.{each}.{kind}"] for each in qkv]
        weights[f"blocks.0.mixer.from_x.{kind}"] = torch.cat(rows)
    load(ours, weights)
    x_BTD = torch.randn(2, T, D)
    with torch.no_grad():
        expected = theirs(x_BTD).last_hidden_state
        agree(ours(x_BTD, ours.start(2), reading(T))[0], expected)


def test_switch_routes_to_the_best_expert():
    """Theirs drops tokens past a capacity in use, too; ours only in training, so theirs is large here."""
    from transformers import SwitchTransformersConfig
    from transformers.models.switch_transformers.modeling_switch_transformers import (
        SwitchTransformersSparseMLP,
    )

    config = SwitchTransformersConfig(
        d_model=D, d_ff=40, num_experts=4, expert_capacity=64, dropout_rate=0.0, router_jitter_noise=0.0
    )
    theirs = SwitchTransformersSparseMLP(config)
    found = random(theirs)
    shape = Shape(D, 1, N, N, 6, 40, 32, bias=False, options=(ExpertSettings(count=4, inner=40),))
    ours = Switch(shape).eval()
    experts = [f"experts.expert_{each}." for each in range(4)]
    load(ours, {
        "router.weight": found["router.classifier.weight"],
        "inner_EDF": torch.stack([found[f"{each}wi.weight"].T for each in experts]),
        "out_EFD": torch.stack([found[f"{each}wo.weight"].T for each in experts]),
    })  # fmt: skip
    x_BTD = torch.randn(2, T, D)
    with torch.no_grad():
        agree(ours(x_BTD), theirs(x_BTD))


def test_funnel_pools_queries_and_keeps_keys():
    """Their attention has the positions of Transformer-XL, which are set to nothing: pooling is compared."""
    from transformers import FunnelConfig
    from transformers.models.funnel.modeling_funnel import FunnelEncoder

    config = FunnelConfig(
        d_model=D, n_head=N, d_head=6, d_inner=40, block_sizes=[2, 2], num_decoder_layers=1,
        hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, hidden_act="gelu_new",
        separate_cls=False, pool_q_only=True, pooling_type="mean", attention_type="relative_shift",
        truncate_seq=False,
    )  # fmt: skip
    theirs = FunnelEncoder(config)
    random(theirs)
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            if any(each in name for each in ("r_w_bias", "r_r_bias", "r_kernel", "r_s_bias", "seg_embed")):
                weight.zero_()
    found = theirs.state_dict()
    shape = Shape(
        D, 4, N, N, 6, 40, 32, norm="layernorm", norm_eps=config.layer_norm_eps, norm_place="post",
        ffn="gelu-tanh", causal=False, options=(FunnelSettings(groups=2, pool="query"),),
    )  # fmt: skip
    ours = Funnel(shape, NoPosition(shape)).eval()
    weights = {}
    for layer in range(4):
        prefix, own = f"blocks.{layer // 2}.{layer % 2}.", f"blocks.{layer}."
        heads = [found[f"{prefix}attention.{each}_head.weight"] for each in "qkv"]
        kv_bias = [found[f"{prefix}attention.{each}_head.bias"] for each in "kv"]
        weights |= {
            f"{own}mixer.from_x.weight": torch.cat(heads),
            f"{own}mixer.from_x.bias": torch.cat([torch.zeros(D), *kv_bias]),
            f"{own}mixer.out.weight": found[f"{prefix}attention.post_proj.weight"],
            f"{own}mixer.out.bias": found[f"{prefix}attention.post_proj.bias"],
            f"{own}around_mixer.norm.gain_D": found[f"{prefix}attention.layer_norm.weight"],
            f"{own}around_mixer.norm.bias_D": found[f"{prefix}attention.layer_norm.bias"],
            f"{own}ffn.inner.weight": found[f"{prefix}ffn.linear_1.weight"],
            f"{own}ffn.inner.bias": found[f"{prefix}ffn.linear_1.bias"],
            f"{own}ffn.out.weight": found[f"{prefix}ffn.linear_2.weight"],
            f"{own}ffn.out.bias": found[f"{prefix}ffn.linear_2.bias"],
            f"{own}around_ffn.norm.gain_D": found[f"{prefix}ffn.layer_norm.weight"],
            f"{own}around_ffn.norm.bias_D": found[f"{prefix}ffn.layer_norm.bias"],
        }
    load(ours, weights)
    x_BTD = torch.randn(2, 12, D)
    with torch.no_grad():
        expected = theirs(x_BTD, attention_mask=torch.ones(2, 12)).last_hidden_state
        agree(ours(x_BTD, ours.start(2), reading(12))[0], expected)


def test_mamba2_convolves_decays_and_gates():
    from transformers import Mamba2Config
    from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

    config = Mamba2Config(
        hidden_size=D, num_heads=8, head_dim=6, expand=2, state_size=10, n_groups=1, conv_kernel=4,
        chunk_size=8, use_bias=False, use_conv_bias=True, layer_norm_epsilon=1e-5,
    )  # fmt: skip
    theirs = Mamba2Mixer(config, layer_idx=0)
    found = random(theirs)
    shape = Shape(D, 1, N, N, 6, 40, 32, bias=False, options=(StateSpaceSettings(state=10),))
    ours = Mamba2(shape, NoPosition(shape)).eval()
    inner = 48
    gate, x, b, c, step = torch.split(found["in_proj.weight"], [inner, inner, 10, 10, 8])
    load(ours, {
        "from_x.weight": torch.cat([gate, x, b, c, step]),
        "taps_CJ": found["conv1d.weight"][:, 0],
        "bias_C": found["conv1d.bias"],
        "rate_N": found["A_log"],
        "step_N": found["dt_bias"],
        "skip_N": found["D"],
        "gain_X": found["norm.weight"],
        "out.weight": found["out_proj.weight"],
    })  # fmt: skip
    x_BTD = torch.randn(2, T, D)
    with torch.no_grad():
        expected = theirs(x_BTD)
        agree(ours(x_BTD, ours.start(2), reading(T))[0], expected)
        agree(one_by_one(ours, x_BTD), expected)


def test_gated_delta_of_qwen3_next():
    from transformers import Qwen3NextConfig
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet

    config = Qwen3NextConfig(
        hidden_size=D, linear_num_value_heads=N, linear_num_key_heads=N, linear_key_head_dim=6,
        linear_value_head_dim=6, linear_conv_kernel_dim=4, rms_norm_eps=1e-6, num_hidden_layers=1,
    )  # fmt: skip
    theirs = Qwen3NextGatedDeltaNet(config, layer_idx=0)
    found = random(theirs)
    shape = Shape(D, 1, N, N, 6, 40, 32, bias=False, norm_eps=1e-6)
    ours = GatedDelta(shape, NoPosition(shape)).eval()
    # Theirs has queries, keys, values and gates head by head, and queries first in the convolution.
    q, k, v, z = torch.unflatten(found["in_proj_qkvz.weight"], 0, (N, 4, 6)).transpose(0, 1).flatten(1, 2)
    beta, step = torch.unflatten(found["in_proj_ba.weight"], 0, (N, 2)).transpose(0, 1)
    taps = found["conv1d.weight"][:, 0].chunk(3)
    load(ours, {
        "from_x.weight": torch.cat([z, v, k, q, step, beta]),
        "taps_CJ": torch.cat([taps[2], taps[1], taps[0]]),
        "rate_N": found["A_log"],
        "step_N": found["dt_bias"],
        "gain_X": found["norm.weight"],
        "out.weight": found["out_proj.weight"],
    })  # fmt: skip
    x_BTD = torch.randn(2, T, D)
    with torch.no_grad():
        expected = theirs(x_BTD)
        agree(ours(x_BTD, ours.start(2), reading(T))[0], expected)
        agree(one_by_one(ours, x_BTD), expected)


def test_mlstm_of_xlstm():
    from transformers import xLSTMConfig
    from transformers.models.xlstm.modeling_xlstm import xLSTMLayer

    config = xLSTMConfig(
        hidden_size=D, num_heads=N, qk_dim_factor=1.0, v_dim_factor=1.0, norm_eps=1e-6, gate_soft_cap=15.0,
        use_bias=False, weight_mode="single", chunk_size=16, return_last_states=True, mode="inference",
    )  # fmt: skip
    theirs = xLSTMLayer(config)
    found = random(theirs)
    shape = Shape(D, 1, N, N, 6, 40, 32, bias=False)
    ours = MLSTM(shape, NoPosition(shape)).eval()
    read = [found[f"{each}.weight"] for each in ("q", "k", "v", "ogate_preact")]
    gates = ("igate_preact", "fgate_preact")
    load(ours, {
        "from_x.weight": torch.cat(read),
        "gates.weight": torch.cat([found[f"{each}.weight"] for each in gates]),
        "gates.bias": torch.cat([found[f"{each}.bias"] for each in gates]),
        "gain_X": found["multihead_norm.weight"],
        "out.weight": found["out_proj.weight"],
    })  # fmt: skip
    x_BTD = torch.randn(2, T, D)
    with torch.no_grad():
        expected, _ = theirs(x_BTD)
        agree(ours(x_BTD, ours.start(2), reading(T))[0], expected)
        agree(one_by_one(ours, x_BTD), expected)
