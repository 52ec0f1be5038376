"""Equal weights, equal log-probabilities: our Transformer against GPT-2 and Llama of `transformers`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nextword.models.network import NeuralLanguageModel
from nextword.models.transformer import TRANSFORMER, TransformerNetwork, TransformerSettings

pytestmark = [pytest.mark.agree, pytest.mark.needs("transformers"), pytest.mark.slow]
V, W, D, N, L = 23, 32, 24, 4, 3


def fill(network: TransformerNetwork, weights: dict[str, torch.Tensor]) -> NeuralLanguageModel:
    """Our network with these weights; none may be missing."""
    own = dict(network.named_parameters())
    assert set(own) == set(weights)
    with torch.no_grad():
        for name, weight in weights.items():
            own[name].copy_(weight)
    network.head.closed_V.zero_()  # theirs gives START a probability too
    return NeuralLanguageModel(network)


def pairs_side_by_side(weight_XD: torch.Tensor, heads: int) -> torch.Tensor:
    """Llama turns features i and i + K/2 of a head together, we 2i and 2i + 1: the rows in our order."""
    halves = weight_XD.unflatten(0, (heads, 2, -1))
    return halves.transpose(1, 2).flatten(0, 2)


def check(model: NeuralLanguageModel, theirs: torch.nn.Module) -> None:
    """All at once and one by one."""
    ids = np.random.default_rng(0).integers(0, V, (2, W))
    with torch.no_grad():
        expected = torch.log_softmax(theirs(torch.from_numpy(ids)).logits, dim=-1)
    state = model.start(2, begin=False)
    logp, _ = model.score(ids, np.full(2, W), state)
    rest = np.take_along_axis(expected.numpy()[:, :-1], ids[:, 1:, None], axis=2)[..., 0]
    np.testing.assert_allclose(logp[:, 1:], rest, atol=1e-5)
    for position in range(W):
        found, state = model.step(ids[:, position], state)
        np.testing.assert_allclose(found, expected[:, position], atol=1e-5)


def randomise(theirs: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Their weights, all random: what begins as 0 or 1 would hide mistakes."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return dict(theirs.eval().state_dict())


def test_gpt2_of_transformers_gives_the_same():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=V, n_positions=W, n_embd=D, n_layer=L, n_head=N)
    theirs = GPT2LMHeadModel(config)
    found = randomise(theirs)
    weights = {
        "embedding.weight_VE": found["transformer.wte.weight"],
        "position.table_WD": found["transformer.wpe.weight"],
        "stack.norm.gain_D": found["transformer.ln_f.weight"],
        "stack.norm.bias_D": found["transformer.ln_f.bias"],
    }
    parts = {"mixer.from_x": "attn.c_attn", "mixer.out": "attn.c_proj"}
    parts |= {"ffn.inner": "mlp.c_fc", "ffn.out": "mlp.c_proj"}
    norms = {"around_mixer.norm": "ln_1", "around_ffn.norm": "ln_2"}
    for layer in range(L):
        ours, theirs_ = f"stack.blocks.{layer}.", f"transformer.h.{layer}."
        for own, other in parts.items():  # theirs are stored from-to, ours to-from
            weights[f"{ours}{own}.weight"] = found[f"{theirs_}{other}.weight"].T
            weights[f"{ours}{own}.bias"] = found[f"{theirs_}{other}.bias"]
        for own, other in norms.items():
            weights[f"{ours}{own}.gain_D"] = found[f"{theirs_}{other}.weight"]
            weights[f"{ours}{own}.bias_D"] = found[f"{theirs_}{other}.bias"]
    settings = TransformerSettings(
        layers=L,
        hidden=D,
        heads=N,
        context=W,
        position="learned",
        norm="layernorm",
        qk_norm="none",
        ffn="gelu-tanh",
        bias=True,
        init="gpt2",
    )
    check(fill(TRANSFORMER.build(settings, V, False), weights), theirs)


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_llama_of_transformers_gives_the_same(kv_heads):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=V,
        hidden_size=D,
        intermediate_size=40,
        num_hidden_layers=L,
        num_attention_heads=N,
        num_key_value_heads=kv_heads,
        max_position_embeddings=W,
        rms_norm_eps=1e-6,
        tie_word_embeddings=False,
    )
    theirs = LlamaForCausalLM(config)
    found = randomise(theirs)
    weights = {
        "embedding.weight_VE": found["model.embed_tokens.weight"],
        "stack.norm.gain_D": found["model.norm.weight"],
        "head.weight_VD": found["lm_head.weight"],
    }
    for layer in range(L):
        ours, theirs_ = f"stack.blocks.{layer}.", f"model.layers.{layer}."
        q, k, v, out = (found[f"{theirs_}self_attn.{name}_proj.weight"] for name in "qkvo")
        turned = [pairs_side_by_side(q, N), pairs_side_by_side(k, kv_heads)]
        gate, up, down = (found[f"{theirs_}mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
        weights |= {
            f"{ours}mixer.from_x.weight": torch.cat([*turned, v]),
            f"{ours}mixer.out.weight": out,
            f"{ours}ffn.inner.weight": torch.cat([gate, up]),
            f"{ours}ffn.out.weight": down,
            f"{ours}around_mixer.norm.gain_D": found[f"{theirs_}input_layernorm.weight"],
            f"{ours}around_ffn.norm.gain_D": found[f"{theirs_}post_attention_layernorm.weight"],
        }
    settings = TransformerSettings(
        layers=L,
        hidden=D,
        heads=N,
        kv_heads=kv_heads,
        inner=40,
        context=W,
        norm_eps=1e-6,
        qk_norm="none",
        ffn="swiglu",
        tied=False,
    )
    check(fill(TRANSFORMER.build(settings, V, False), weights), theirs)
