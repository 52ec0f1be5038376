"""GPT-2 of `transformers` at random weights, and our Transformer with the same weights."""

from __future__ import annotations

from typing import Any

import torch

from nextword.models.transformer import TRANSFORMER, TransformerNetwork, TransformerSettings

PARTS = {
    "mixer.from_x": "attn.c_attn",
    "mixer.out": "attn.c_proj",
    "ffn.inner": "mlp.c_fc",
    "ffn.out": "mlp.c_proj",
}
NORMS = {"around_mixer.norm": "ln_1", "around_ffn.norm": "ln_2"}


def their_gpt2(vocab: int, context: int, width: int, layers: int, heads: int) -> Any:
    """A model that was never trained: speed does not depend on what it has learnt."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=vocab, n_positions=context, n_embd=width, n_layer=layers, n_head=heads,
        bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config).eval()


def our_gpt2(theirs: Any) -> TransformerNetwork:
    """Its weights in our network; tests/agree/test_transformers.py holds the two to each other."""
    config, found = theirs.config, theirs.state_dict()
    settings = TransformerSettings(
        layers=config.n_layer, hidden=config.n_embd, heads=config.n_head, context=config.n_positions,
        position="learned", norm="layernorm", qk_norm="none", ffn="gelu-tanh", bias=True, init="gpt2",
    )  # fmt: skip
    network = TRANSFORMER.build(settings, config.vocab_size, False)
    weights = {"embedding.weight_VE": found["transformer.wte.weight"]}
    weights["position.table_WD"] = found["transformer.wpe.weight"]
    names = {"stack.norm": "transformer.ln_f"}
    for layer in range(config.n_layer):
        ours, other = f"stack.blocks.{layer}.", f"transformer.h.{layer}."
        for own, name in PARTS.items():
            weights[f"{ours}{own}.weight"] = found[f"{other}{name}.weight"].T
            weights[f"{ours}{own}.bias"] = found[f"{other}{name}.bias"]
        names |= {ours + own: other + name for own, name in NORMS.items()}
    for own, name in names.items():
        weights[f"{own}.gain_D"], weights[f"{own}.bias_D"] = found[f"{name}.weight"], found[f"{name}.bias"]
    with torch.no_grad():
        for name, weight in weights.items():
            network.get_parameter(name).copy_(weight)
    return network
