"""Our Transformer's weights under JoeyNMT's names: norms before the parts, positions added, vectors tied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nextword.core.contracts import END, SPECIALS, START, UNKNOWN


def write_weights(network: Any, path: Path) -> None:
    """Write them as arrays; its padding is a token of its own, of zeros."""
    vectors_VE = network.embedding.weight_VE.detach()
    first = vectors_VE[[UNKNOWN, START, START, END]].clone()
    first[1] = 0.0
    table = torch.cat([first, vectors_VE[len(SPECIALS) :]])
    found: dict[str, Tensor] = {"src_embed.lut.weight": table, "decoder.output_layer.weight": table}
    encoder = network.reader.encoder
    for side, stack in (("encoder", encoder.stack), ("decoder", network.stack)):
        found |= _norm(f"{side}.layer_norm", stack.norm)
        for number, layer in enumerate(stack.blocks):
            found |= _layer(f"{side}.layers.{number}", layer, side == "encoder")
    np.savez(path, **{name: weight.detach().contiguous().numpy() for name, weight in found.items()})


def _layer(place: str, layer: Any, is_encoder: bool) -> dict[str, Tensor]:
    own = "src_src_att" if is_encoder else "trg_trg_att"
    found = _linear(f"{place}.feed_forward.pwff_layer.0", layer.ffn.inner)
    found |= _linear(f"{place}.feed_forward.pwff_layer.3", layer.ffn.out)
    found |= _norm(f"{place}.feed_forward.layer_norm", layer.around_ffn.norm)
    found |= _norm(f"{place}.{'layer_norm' if is_encoder else 'x_layer_norm'}", layer.around_mixer.norm)
    found |= _linear(f"{place}.{own}.output_layer", layer.mixer.out)
    found |= _split(f"{place}.{own}", layer.mixer.from_x, "qkv")
    if not is_encoder:
        found |= _norm(f"{place}.dec_layer_norm", layer.around_cross.norm)
        found |= _linear(f"{place}.src_trg_att.output_layer", layer.cross.out)
        found |= _split(f"{place}.src_trg_att", layer.cross.from_x, "q")
        found |= _split(f"{place}.src_trg_att", layer.cross.from_source, "kv")
    return found


def _split(place: str, linear: nn.Linear, letters: str) -> dict[str, Tensor]:
    parts = zip(letters, linear.weight.chunk(len(letters)), linear.bias.chunk(len(letters)), strict=True)
    found = {}
    for letter, weight, bias in parts:
        found |= {f"{place}.{letter}_layer.weight": weight, f"{place}.{letter}_layer.bias": bias}
    return found


def _linear(place: str, linear: nn.Linear) -> dict[str, Tensor]:
    return {f"{place}.weight": linear.weight, f"{place}.bias": linear.bias}


def _norm(place: str, norm: Any) -> dict[str, Tensor]:
    return {f"{place}.weight": norm.gain_D, f"{place}.bias": norm.bias_D}
