"""The modifications of the Transformer by name: what each sets, as data; `nextword list modifications`.

Every row of the table [MAUSAM "Do Transformer Modifications Transfer Across Implementations and
Applications?"] (Narang et al. 2021), as a language model of about a million weights (``--model narang/NAME``)
and as the table measured it: an encoder-decoder of 12 + 12 layers. Where the measured code differs from a
paper's idea, the language model has the idea and the table what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Sets = Mapping[str, Any]

VOCABULARY = 32128  # of the table: 32,000 pieces and 100 sentinels, in full rows of 128
ROWS, SOURCE, TARGET = 128, 512, 114  # of one batch of the table

# The parts of the vanilla row: the base of all others.
PARTS: dict[str, Any] = {
    "position": "t5", "norm": "layernorm", "norm_eps": 1e-6, "qk_norm": "none", "ffn": "relu",
    "scale": "none", "bias": True, "attention_bias": "no", "init": "t5",
}  # fmt: skip
FULL: dict[str, Any] = {
    "layers": 12,
    "hidden": 768,
    "heads": 12,
    "head_size": 64,
    "inner": 3072,
    "context": 512,
}
SMALL: dict[str, Any] = {"layers": 6, "hidden": 96, "heads": 6, "head_size": 16, "inner": 384, "context": 128}
_GATED = {"inner": 2048}  # two thirds: three matrices in place of two


@dataclass(frozen=True)
class Modification:
    """One modification.

    ``sets``: settings of a language model beside those of the vanilla row. ``both``, ``encoder``, ``decoder``
    and ``whole``: settings of the table's stacks and of what they share.
    """

    name: str
    paper: str
    row: str = ""  # as the table names it; "": it has no such row
    sets: Sets | None = field(default_factory=dict)  # None: a language model has nothing to modify
    both: Sets = field(default_factory=dict)
    encoder: Sets = field(default_factory=dict)
    decoder: Sets = field(default_factory=dict)
    whole: Sets = field(default_factory=dict)


def _ffn(name: str, row: str, paper: str, ffn: str) -> Modification:
    return Modification(name, paper, row, {"ffn": ffn}, {"ffn": ffn})


def _gated(name: str, row: str, ffn: str) -> Modification:
    paper = "Dauphin et al. 2017" if name == "glu" else "Shazeer 2020"
    return Modification(name, paper, row, {"ffn": ffn, "inner": 256}, {"ffn": ffn, **_GATED})


def _deep(name: str, row: str, layers: int, inner: int, heads: int) -> Modification:
    """Return a row of another depth at the same cost: layers x inner and layers x heads stay the same."""
    small = {"layers": layers // 2, "inner": inner // 8, "heads": heads // 2}
    return Modification(
        name, "Narang et al. 2021", row, small, {"layers": layers, "inner": inner, "heads": heads}
    )


def _synthesizer(name: str, row: str) -> Modification:
    """Return a row whose code had 8 heads of 128 features in the synthesizers alone."""
    mixer = f"synthesizer-{name}"
    table = {"mixer": mixer, "heads": 8, "head_size": 128}
    cross = {"cross_heads": 12, "cross_size": 64}
    return Modification(mixer, "Tay et al. 2021", row, {"mixer": mixer}, table, decoder=cross)


_SHARING = "Lan et al. 2020"
_SHARED = {"stack": "shared"}
_FACTORS = {"embedding_kind": "factorized", "factors": {"size": 128}}
_SMALL_FACTORS = {"embedding_kind": "factorized", "factors": {"size": 24}}
_INPUTS = {"tie": "inputs"}
_CLUSTERS = {"embedding_kind": "adaptive", "clusters": {"starts": (2500, 8500), "widths": (768, 256, 64)}}
_STARTS = (2500, 8500, 32000)
_CONVOLUTION = {"widths": (9,), "heads": 768, "pointwise": True, "bias": True}
_SMALL_CONVOLUTION = {"position": "none", "convolution": {"widths": (3, 7, 15)}}
_EXPERTS = {"count": 32, "inner": 1536, "capacity": 2.0}
_SWITCH = {"count": 32, "inner": 3072, "capacity": 1.2, "jitter": 0.01}
_SMALL_EXPERTS = {"count": 8, "capacity": 2.0}
_UNIVERSAL = {"steps": 24, "before": 2, "after": 2, "vectors": "learned"}
_FIXUP = {
    "connections": "fixup", "norm": "none", "final_norm": "shift", "ffn": "fixup", "init": "fixup",
    "scale": "sqrt",
}  # fmt: skip
_REZERO = "Bachlechner et al. 2020"

TABLE: tuple[Modification, ...] = (
    Modification("vanilla", "Vaswani et al. 2017; Raffel et al. 2020", "Vanilla"),
    _ffn("gelu", "GeLU", "Hendrycks & Gimpel 2016", "gelu-tanh"),
    _ffn("swish", "Swish", "Ramachandran et al. 2017", "swish"),
    _ffn("elu", "ELU", "Clevert et al. 2016", "elu"),
    _ffn("selu", "SeLU", "Klambauer et al. 2017", "selu"),
    _ffn("sigmoid", "Sigmoid", "Narang et al. 2021", "sigmoid"),
    _ffn("softplus", "Softplus", "Dugas et al. 2001", "softplus"),
    _gated("glu", "GLU", "glu"),
    _gated("geglu", "GeGLU", "geglu-tanh"),
    _gated("reglu", "ReGLU", "reglu"),
    _gated("swiglu", "SwiGLU", "swiglu"),
    _gated("liglu", "LiGLU", "liglu"),
    Modification(
        "rms-norm", "Zhang & Sennrich 2019", "RMS Norm", {"norm": "rmsnorm"}, {"norm": "partial-rmsnorm"}
    ),
    Modification("rezero", _REZERO, "Rezero", *[{"connections": "rezero", "norm": "none"}] * 2),
    Modification("rezero-layernorm", _REZERO, "Rezero + LayerNorm", *[{"connections": "rezero"}] * 2),
    Modification(
        "rezero-rms-norm", _REZERO, "Rezero + RMS Norm", *[{"connections": "rezero", "norm": "rmsnorm"}] * 2
    ),
    Modification(
        "fixup", "Zhang et al. 2019", "Fixup", _FIXUP, _FIXUP, encoder={"final_norm": "shift-scale"}
    ),
    _deep("24-layers", "24 layers, ff 1536, H 6", 24, 1536, 6),
    _deep("18-layers", "18 layers, ff 2048, H 8", 18, 2048, 8),
    _deep("8-layers", "8 layers, ff 4608, H 18", 8, 4608, 18),
    _deep("6-layers", "6 layers, ff 6144, H 24", 6, 6144, 24),
    Modification(
        "block-sharing", _SHARING, "Block sharing", {**_SHARED, "tied": False}, _SHARED, whole=_INPUTS
    ),
    Modification(
        "block-sharing-factorized",
        _SHARING,
        "+ Factorized embeddings",
        {**_SHARED, **_SMALL_FACTORS, "tied": False},
        _SHARED,
        whole=_FACTORS | _INPUTS,
    ),
    Modification(
        "block-sharing-factorized-shared",
        _SHARING,
        "+ Factorized & shared embeddings",
        {**_SHARED, **_SMALL_FACTORS},
        _SHARED,
        whole=_FACTORS,
    ),
    Modification(
        "encoder-block-sharing", _SHARING, "Encoder only block sharing", None, encoder=_SHARED, whole=_INPUTS
    ),
    Modification(
        "decoder-block-sharing", _SHARING, "Decoder only block sharing", None, decoder=_SHARED, whole=_INPUTS
    ),
    Modification(
        "factorized-embedding",
        _SHARING,
        "Factorized Embedding",
        {**_SMALL_FACTORS, "tied": False},
        whole=_FACTORS | _INPUTS,
    ),
    Modification(
        "factorized-shared-embeddings",
        _SHARING,
        "Factorized & shared embeddings",
        _SMALL_FACTORS,
        whole=_FACTORS,
    ),
    Modification(
        "tied-inputs",
        "Press & Wolf 2017",
        "Tied encoder/decoder input embeddings",
        None,
        whole=_INPUTS,
    ),
    Modification(
        "tied-decoder",
        "Press & Wolf 2017",
        "Tied decoder input and output embeddings",
        None,
        whole={"tie": "decoder"},
    ),
    Modification("untied", "Press & Wolf 2017", "Untied embeddings", {"tied": False}, whole={"tie": "none"}),
    Modification(
        "adaptive-input",
        "Baevski & Auli 2019",
        "Adaptive input embeddings",
        {"embedding_kind": "adaptive"},
        whole=_CLUSTERS,
    ),
    Modification(
        "adaptive-softmax",
        "Grave et al. 2017",
        "Adaptive softmax",
        {"embedding_kind": "adaptive", "head": "adaptive"},
        whole={
            "embedding_kind": "adaptive",
            "head": "adaptive",
            "clusters": {"starts": _STARTS, "widths": (768, 256, 64, 768)},
        },
    ),
    Modification(
        "adaptive-softmax-wide",
        "Grave et al. 2017",
        "Adaptive softmax without projection",
        {"head": "adaptive"},
        whole={
            "embedding_kind": "adaptive",
            "head": "adaptive",
            "clusters": {"starts": _STARTS, "widths": (768,) * 4},
        },
    ),
    Modification(
        "mixture-of-softmaxes",
        "Yang et al. 2018",
        "Mixture of softmaxes",
        {"head": "softmaxes", "softmaxes": {"count": 4}},
        whole={"head": "softmaxes", "softmaxes": {"count": 15}},
    ),
    Modification(
        "transparent-attention",
        "Bapna et al. 2018",
        "Transparent attention",
        {"stack": "transparent"},
        whole={"link": "transparent"},
    ),
    Modification(
        "dynamic-convolution",
        "Wu et al. 2019",
        "Dynamic convolution",
        {"mixer": "dynamicconv", **_SMALL_CONVOLUTION},
        {"mixer": "dynamicconv", "position": "none", "convolution": _CONVOLUTION, "inner": 512},
    ),
    Modification(
        "lightweight-convolution",
        "Wu et al. 2019",
        "Lightweight convolution",
        {"mixer": "lightconv", **_SMALL_CONVOLUTION},
        {"mixer": "lightconv", "position": "none", "convolution": _CONVOLUTION},
    ),
    Modification(
        "evolved-transformer",
        "So et al. 2019",
        "Evolved Transformer",
        {"block": "evolved", "layers": 3, "ffn": "swish"},
        {"block": "evolved", "layers": 6},
        decoder={"ffn": "swish"},
    ),
    _synthesizer("dense", "Synthesizer (dense)"),
    _synthesizer("dense-plus", "Synthesizer (dense plus)"),
    _synthesizer("dense-plus-alpha", "Synthesizer (dense plus alpha)"),
    _synthesizer("factorized", "Synthesizer (factorized)"),
    _synthesizer("random", "Synthesizer (random)"),
    _synthesizer("random-plus", "Synthesizer (random plus)"),
    _synthesizer("random-plus-alpha", "Synthesizer (random plus alpha)"),
    Modification(
        "universal-transformer",
        "Dehghani et al. 2019",
        "Universal Transformer",
        {"stack": "universal", "layers": 1, "recurrence": {"steps": 6, "halting": "accumulate"}},
        {"stack": "universal", "layers": 1, "connections": "universal", "recurrence": _UNIVERSAL},
        whole=_INPUTS,
    ),
    Modification(
        "mixture-of-experts",
        "Shazeer et al. 2017; Lepikhin et al. 2021",
        "Mixture of experts",
        {"exceptions": ("every 3: ffn=experts",), "experts": _SMALL_EXPERTS},
        {"exceptions": ("every 4: ffn=experts",), "experts": _EXPERTS},
        decoder={"experts": {**_EXPERTS, "capacity": 1.25}},
    ),
    Modification(
        "switch-transformer",
        "Fedus et al. 2022",
        "Switch Transformer",
        {
            "exceptions": ("every 3: ffn=switch",),
            "experts": {**_SMALL_EXPERTS, "capacity": 1.2, "jitter": 0.01},
        },
        {"exceptions": ("every 4: ffn=switch",), "experts": _SWITCH},
        decoder={"experts": {**_SWITCH, "capacity": 1.25}},
    ),
    Modification(
        "funnel-transformer",
        "Dai et al. 2020",
        "Funnel Transformer",
        {"stack": "hourglass", "funnel": {"groups": 3}},
        {"norm": "rmsnorm", "bias": False},
        encoder={"stack": "funnel", "funnel": {"groups": 3, "pool": "output"}},
    ),
    Modification(
        "weighted-transformer",
        "Ahmed et al. 2017",
        "Weighted Transformer",
        {"block": "weighted"},
        {"block": "weighted"},
    ),
    Modification(
        "product-key-memory",
        "Lample et al. 2019",
        "Product key memory",
        {"exceptions": ("5: ffn=memory",), "memory": {"keys": 32, "heads": 4, "size": 32, "found": 8}},
        decoder={
            "exceptions": ("11: ffn=memory",),
            "memory": {"keys": 512, "heads": 4, "size": 256, "found": 32},
        },
    ),
)


def language_model(modification: Modification, base: Sets | None = None) -> dict[str, Any]:
    """Return the settings of a row's language model, about a million weights, by dotted names.

    ``base``: what the row changes; by default the vanilla row. A name without a dot is one of the model.
    """
    values = dict(PARTS | SMALL | {"output_scale": 0.0, "frequencies": False} if base is None else base)
    values |= dict(modification.sets or {})
    return {name if "." in name else f"model.{name}": value for name, value in values.items()}
