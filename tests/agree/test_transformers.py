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


def of_llama(found: dict[str, torch.Tensor], kv_heads: int, normed: bool = False) -> dict[str, torch.Tensor]:
    """Return weights of Llama and its kin by our names; ``normed``: queries and keys have norms."""
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
        if normed:
            for name, own in (("q", "query"), ("k", "key")):
                gain_K1 = found[f"{theirs_}self_attn.{name}_norm.weight"][:, None]
                weights[f"{ours}mixer.norm.{own}_gain_K"] = pairs_side_by_side(gain_K1, 1)[:, 0]
    return weights


LLAMA = {
    "vocab_size": V, "hidden_size": D, "intermediate_size": 40, "num_hidden_layers": L,
    "num_attention_heads": N, "max_position_embeddings": W, "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}  # fmt: skip
OURS = {
    "layers": L, "hidden": D, "heads": N, "inner": 40, "context": W, "norm_eps": 1e-6, "qk_norm": "none",
    "ffn": "swiglu", "tied": False,
}  # fmt: skip


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_llama_of_transformers_gives_the_same(kv_heads):
    from transformers import LlamaConfig, LlamaForCausalLM

    theirs = LlamaForCausalLM(LlamaConfig(**LLAMA, num_key_value_heads=kv_heads))
    weights = of_llama(randomise(theirs), kv_heads)
    settings = TransformerSettings(**OURS, kv_heads=kv_heads)
    check(fill(TRANSFORMER.build(settings, V, False), weights), theirs)


SCALED = {
    "linear": ({"rope_type": "linear", "factor": 4.0}, {"scaling": "linear", "factor": 4.0}),
    "yarn": (
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8},
        {"scaling": "yarn", "factor": 4.0},
    ),
    "llama3": (
        {
            "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8,
        },
        {"scaling": "llama3", "factor": 4.0, "trained": 8},
    ),
}  # fmt: skip


@pytest.mark.parametrize("scaling", SCALED)
def test_llama_with_stretched_positions_gives_the_same(scaling):
    from transformers import LlamaConfig, LlamaForCausalLM

    given, own = SCALED[scaling]
    config = LlamaConfig(**LLAMA, num_key_value_heads=N, rope_parameters={"rope_theta": 10000.0, **given})
    theirs = LlamaForCausalLM(config)
    weights = of_llama(randomise(theirs), N)
    check(fill(TRANSFORMER.build(TransformerSettings(**OURS, rotary=own), V, False), weights), theirs)


def test_llama_with_the_base_of_a_longer_context_gives_the_same_at_its_full_length():
    """Theirs changes the base as a text grows, also that of old keys; ours has the last one throughout."""
    from transformers import LlamaConfig, LlamaForCausalLM

    rope = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
    theirs = LlamaForCausalLM(
        LlamaConfig(**LLAMA | {"max_position_embeddings": 8}, num_key_value_heads=N, rope_parameters=rope)
    )
    weights = of_llama(randomise(theirs), N)
    own = {"scaling": "ntk", "factor": 4.0, "trained": 8}
    model = fill(TRANSFORMER.build(TransformerSettings(**OURS, rotary=own), V, False), weights)
    ids = np.random.default_rng(0).integers(0, V, (2, W))
    with torch.no_grad():
        expected = torch.log_softmax(theirs(torch.from_numpy(ids)).logits, dim=-1)
    logp, _ = model.score(ids, np.full(2, W), model.start(2, begin=False))
    rest = np.take_along_axis(expected.numpy()[:, :-1], ids[:, 1:, None], axis=2)[..., 0]
    np.testing.assert_allclose(logp[:, 1:], rest, atol=1e-5)


def test_mistral_with_a_window_gives_the_same():
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(**LLAMA, num_key_value_heads=2, sliding_window=5, head_dim=D // N)
    theirs = MistralForCausalLM(config)
    weights = of_llama(randomise(theirs), 2)
    settings = TransformerSettings(**OURS, kv_heads=2, mixer="window", windowed={"width": 5})
    check(fill(TRANSFORMER.build(settings, V, False), weights), theirs)


def test_qwen3_with_normed_queries_and_keys_gives_the_same():
    from transformers import Qwen3Config, Qwen3ForCausalLM

    theirs = Qwen3ForCausalLM(Qwen3Config(**LLAMA, num_key_value_heads=2, head_dim=8))
    weights = of_llama(randomise(theirs), 2, normed=True)
    settings = TransformerSettings(**OURS | {"qk_norm": "rms"}, kv_heads=2, head_size=8)
    check(fill(TRANSFORMER.build(settings, V, False), weights), theirs)
