"""Equal weights, equal log-probabilities: our encoder-decoder against MarianMT of `transformers`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from nextword.core import catalog
from nextword.core.contracts import START, Block, Source
from nextword.data.paired import PairVocabulary
from nextword.models.seq2seq import Translator
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

pytestmark = [pytest.mark.agree, pytest.mark.needs("transformers"), pytest.mark.slow]
D, LAYERS, INNER = 16, 2, 24
# Marian puts all sines before all cosines; here they alternate: the same up to the order of the features.
ORDER = torch.arange(D).view(2, D // 2).T.flatten()


def vocabulary() -> PairVocabulary:
    settings = TextSettings(tokenizer="characters")
    tokenizer = fit_tokenizer("characters", [Block(b"abcdefghijklm", True)], settings, "document")
    return PairVocabulary(tokenizer, tokenizer)


def marian(activation: str, vocab_size: int) -> torch.nn.Module:
    import transformers

    config = transformers.MarianConfig(
        vocab_size=vocab_size, d_model=D, encoder_layers=LAYERS, decoder_layers=LAYERS,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=INNER, decoder_ffn_dim=INNER,
        activation_function=activation, scale_embedding=True, dropout=0.0, max_position_embeddings=64,
        decoder_start_token_id=START, pad_token_id=0, eos_token_id=2, forced_eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" not in name:
                weight += 0.1 * torch.randn_like(weight)
        model.final_logits_bias.normal_(std=0.1)
    return model


def ours(activation: str, words: PairVocabulary) -> Translator:
    family = catalog.find("translator", "transformer")
    settings = family.Settings(
        hidden=D, layers=LAYERS, heads=2, inner=INNER, position="sinusoidal", norm="layernorm",
        norm_place="post", bias=True, qk_norm="none", ffn={"silu": "swish"}.get(activation, activation),
        embedding_kind="scaled", dropout=0.0, init="gpt2",
    )  # fmt: skip
    return Translator(family.build(settings, words), words)


def weights(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return Marian's weights by our names, the features in our order."""
    found = {"embedding.weight_VE": model.model.shared.weight[:, ORDER]}
    found["head.bias_V"] = model.final_logits_bias[0]
    for side, layers in (("", model.model.decoder.layers), ("reader.encoder.", model.model.encoder.layers)):
        for at, layer in enumerate(layers):
            place = f"{side}stack.blocks.{at}"
            found |= attention(f"{place}.mixer", layer.self_attn, "qkv", "")
            found |= norm(f"{place}.around_mixer.norm", layer.self_attn_layer_norm)
            found |= norm(f"{place}.around_ffn.norm", layer.final_layer_norm)
            found[f"{place}.ffn.inner.weight"] = layer.fc1.weight[:, ORDER]
            found[f"{place}.ffn.inner.bias"] = layer.fc1.bias
            found[f"{place}.ffn.out.weight"] = layer.fc2.weight[ORDER]
            found[f"{place}.ffn.out.bias"] = layer.fc2.bias[ORDER]
            if not side:
                found |= attention(f"{place}.cross", layer.encoder_attn, "q", "kv")
                found |= norm(f"{place}.around_cross.norm", layer.encoder_attn_layer_norm)
    return found


def attention(place: str, part: torch.nn.Module, own: str, other: str) -> dict[str, Tensor]:
    found = {f"{place}.out.weight": part.out_proj.weight[ORDER]}
    found[f"{place}.out.bias"] = part.out_proj.bias[ORDER]
    for name, letters in (("from_x", own), ("from_source", other)):
        if letters:
            maps = [getattr(part, f"{letter}_proj") for letter in letters]
            found[f"{place}.{name}.weight"] = torch.cat([each.weight[:, ORDER] for each in maps])
            found[f"{place}.{name}.bias"] = torch.cat([each.bias for each in maps])
    return found


def norm(place: str, part: torch.nn.Module) -> dict[str, Tensor]:
    return {f"{place}.gain_D": part.weight[ORDER], f"{place}.bias_D": part.bias[ORDER]}


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_equal_weights_give_equal_probabilities(activation):
    words = vocabulary()
    peer, model = marian(activation, words.vocab_size), ours(activation, words)
    missing, unexpected = model.network.load_state_dict(weights(peer), strict=False)
    assert not unexpected
    assert set(missing) == {"head.weight_VD", "reader.embedding.weight_VE"}  # tied to the embedding
    draw = np.random.default_rng(0)
    source_BS, lengths_B = draw.integers(3, words.vocab_size, (3, 7)), np.array([7, 4, 1])
    ids_BT = draw.integers(3, words.vocab_size, (3, 5))
    real_BS = torch.arange(7) < torch.tensor(lengths_B)[:, None]
    inputs_BT = torch.cat([torch.full((3, 1), START), torch.tensor(ids_BT)], dim=1)
    with torch.no_grad():
        logits_BTV = peer(
            input_ids=torch.tensor(source_BS), attention_mask=real_BS.long(), decoder_input_ids=inputs_BT
        ).logits
    logits_BTV[..., START] = -torch.inf  # START is never written
    expected_BTV = logits_BTV.log_softmax(dim=-1)
    state = model.start(3, Source(source_BS, lengths_B))
    for t in range(6):
        torch.testing.assert_close(model.next(state), expected_BTV[:, t], atol=1e-5, rtol=1e-5)
        if t < 5:
            _, state = model.step(ids_BT[:, t], state)
