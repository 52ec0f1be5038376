"""Write a Transformer encoder-decoder for CTranslate2, an engine that translates with it.

Everything is written with its own specification of models, so that files fit the version that is installed.
ReLU² is ReLU(x) x, a gated part whose two matrices are one. Tokens that are never written have a bias that
leaves them no probability.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nextword.core.contracts import SPECIALS, Tokenizer, never_next
from nextword.core.errors import ConfigError, MissingPart
from nextword.core.events import Done, Event, Stage
from nextword.data.paired import PairVocabulary

_ACTIVATIONS = {"relu": "RELU", "relu2": "RELU", "gelu": "GELU", "gelu-tanh": "GELUTanh", "swish": "SWISH"}
_POSITIONS = ("rope", "sinusoidal", "learned")
_NEVER = -1e9  # a bias that leaves no probability, and stays finite
_ONLY = {
    "model.norm": ("layernorm", "rmsnorm"), "model.norm_place": ("pre", "post"),
    "model.qk_norm": ("rms", "none"), "model.ffn": tuple(_ACTIVATIONS), "model.position": _POSITIONS,
    "model.connections": ("residual",), "model.block": ("serial",), "model.stack": ("plain",),
    "model.mixer": ("attention",), "model.order": ("AXF",), "model.encoder": ("same", "transformer"),
    "model.embedding_kind": ("table", "scaled"), "model.head": ("softmax",), "model.exceptions": ((),),
    "model.scale": ("sqrt",), "model.final_norm": ("same",), "model.attention_bias": ("same",),
    "model.output_scale": (1.0,), "model.copying": (False,), "model.link": ("last",),
    "model.encoder_stack": ("same", "plain"),
}  # fmt: skip


def write_ctranslate2(
    folder: str | os.PathLike[str], model: Any, settings: Any, vocabulary: PairVocabulary
) -> Iterator[Event]:
    """Write the model as a folder; the last event says what was written."""
    try:
        from ctranslate2.specs import common_spec, transformer_spec
    except ImportError as error:
        raise MissingPart("ctranslate2", "export", "writing for CTranslate2") from error
    _check(settings)
    target = Path(folder)
    if target.exists() and any(target.iterdir()):
        raise ConfigError(f"'{target}' exists and is not empty; choose another folder")
    yield Stage("write")
    network = model.network
    shape, encoder_shape = network.stack.shape, network.reader.encoder.stack.shape
    options = {
        "pre_norm": settings.norm_place == "pre",
        "activation": getattr(common_spec.Activation, _ACTIVATIONS[settings.ffn]),
        "ffn_glu": settings.ffn == "relu2", "rms_norm": settings.norm == "rmsnorm",
        "rotary_dim": shape.head_size if settings.position == "rope" else None,
        "rotary_base": settings.base, "qk_norm": settings.qk_norm == "rms",
        "num_heads_kv": None if shape.kv_heads == shape.heads else shape.kv_heads,
        "head_dim": None if shape.heads * shape.head_size == shape.width else shape.head_size,
    }  # fmt: skip
    encoder = transformer_spec.TransformerEncoderSpec(encoder_shape.layers, shape.heads, **options)
    decoder = transformer_spec.TransformerDecoderSpec(
        shape.layers, shape.heads, alignment_layer=max(0, shape.layers - 2), **options
    )
    writer = _Writer(settings)
    writer.encoder(encoder, network.reader)
    writer.decoder(decoder, network, vocabulary.target.closed)
    spec = transformer_spec.TransformerSpec(encoder, decoder)
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = settings.norm_eps
    spec.register_source_vocabulary(token_names(vocabulary.source))
    spec.register_target_vocabulary(token_names(vocabulary.target))
    spec.validate()
    spec.optimize(quantization="float32")
    target.mkdir(parents=True, exist_ok=True)
    spec.save(str(target))
    size = sum(each.stat().st_size for each in target.iterdir())
    yield Done({"path": os.fspath(folder), "format": "ctranslate2", "bytes": size})


def token_names(tokenizer: Tokenizer) -> list[str]:
    """Return a name for every token in the order of the ids: its text, with a number if not unique."""
    found: dict[str, None] = dict.fromkeys(SPECIALS)
    for index in range(len(SPECIALS), tokenizer.vocab_size):
        name = tokenizer.piece(index).replace("\n", "\\n").replace("\r", "\\r")
        found[name if name and name not in found else f"{name}#{index}"] = None
    return list(found)


def _check(settings: Any) -> None:
    """Refuse parts that CTranslate2 does not have."""
    for key, allowed in _ONLY.items():
        value = getattr(settings, key.partition(".")[2], allowed[0])
        if value not in allowed:
            shown = ", ".join(map(str, allowed))
            raise ConfigError(
                f"'{key}' is '{value}', and CTranslate2 has only: {shown}; train with one of these"
            )


class _Writer:
    """Copies weights into a specification."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def encoder(self, spec: Any, reader: Any) -> None:
        """Copy the encoder."""
        spec.embeddings[0].weight = _array(reader.embedding.weight_VE)
        self._around(spec, reader.encoder.position)
        self._norm(spec, reader.encoder.stack.norm)
        for own, layer in zip(spec.layer, reader.encoder.stack.blocks, strict=True):
            self._layer(own, layer)

    def decoder(self, spec: Any, network: Any, closed: bool) -> None:
        """Copy the decoder and its output layer."""
        spec.embeddings.weight = _array(network.embedding.weight_VE)
        self._around(spec, network.position)
        self._norm(spec, network.stack.norm)
        head = network.head
        spec.projection.weight = _array(head.weight_VD[: network.vocab_size])
        bias_V = _array(head.bias_V).copy()
        bias_V[list(never_next(closed))] = _NEVER
        spec.projection.bias = bias_V
        for own, layer in zip(spec.layer, network.stack.blocks, strict=True):
            self._layer(own, layer)
            self._cross(own.attention, layer)

    def _around(self, spec: Any, position: Any) -> None:
        """Copy what is beside the layers: the scale of embeddings, and positions that are added."""
        spec.scale_embeddings = self.settings.embedding_kind == "scaled"
        if self.settings.position == "rope":
            if hasattr(spec, "position_encodings"):
                delattr(spec, "position_encodings")
        else:
            spec.position_encodings.encodings = _array(position.table_WD)

    def _layer(self, spec: Any, layer: Any) -> None:
        own = spec.self_attention
        self._norm(own, layer.around_mixer.norm)
        self._linear(own.linear[0], layer.mixer.from_x)
        self._linear(own.linear[1], layer.mixer.out)
        if self.settings.qk_norm == "rms":
            own.q_norm.gamma = _array(layer.mixer.norm.query_gain_K)
            own.k_norm.gamma = _array(layer.mixer.norm.key_gain_K)
        self._norm(spec.ffn, layer.around_ffn.norm)
        self._linear(spec.ffn.linear_0, layer.ffn.inner)
        if self.settings.ffn == "relu2":
            self._linear(spec.ffn.linear_0_noact, layer.ffn.inner)
        self._linear(spec.ffn.linear_1, layer.ffn.out)

    def _cross(self, spec: Any, layer: Any) -> None:
        self._norm(spec, layer.around_cross.norm)
        for own, linear in zip(
            spec.linear, (layer.cross.from_x, layer.cross.from_source, layer.cross.out), strict=True
        ):
            self._linear(own, linear)
        for name in ("q_norm", "k_norm"):  # ours norms queries and keys in self-attention only
            if hasattr(spec, name):
                delattr(spec, name)

    def _norm(self, spec: Any, norm: Any) -> None:
        if norm is None:
            return
        spec.layer_norm.gamma = _array(norm.gain_D)
        if self.settings.norm == "layernorm":
            bias = getattr(norm, "bias_D", None)
            spec.layer_norm.beta = np.zeros_like(spec.layer_norm.gamma) if bias is None else _array(bias)

    def _linear(self, spec: Any, linear: Any) -> None:
        spec.weight = _array(linear.weight)
        if linear.bias is not None:
            spec.bias = _array(linear.bias)


def _array(tensor: Any) -> Any:
    found = tensor.detach().float().cpu().contiguous().numpy()
    return np.array(found, dtype=np.float32)
