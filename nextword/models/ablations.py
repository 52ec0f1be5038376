"""What the Transformer of 2017 changed at once, taken away one at a time: ``--model ablations/NAME``.

[MAUSAM "Transformers (2017) Made Many Changes at Once!"]: position encodings in place of recurrence, residual
connections, attention and feed-forward parts by turns, layer norms, several heads, tuned hyper-parameters.
The base is the decoder of the paper at a small size, with its recipe; sizes stay equal where a row allows it.
"""

from __future__ import annotations

from typing import Any

from nextword.models.modifications import SMALL, Modification

ORIGINAL: dict[str, Any] = SMALL | {
    "position": "sinusoidal", "norm": "layernorm", "norm_place": "post", "norm_eps": 1e-6, "qk_norm": "none",
    "ffn": "relu", "scale": "sqrt", "bias": True, "attention_bias": "no", "embedding_kind": "scaled",
    "frequencies": False, "init": "xavier", "dropout": 0.1, "train.smoothing": 0.1, "train.warmup": 0.1,
    "train.betas": (0.9, 0.98),
}  # fmt: skip
_HEADS = SMALL["heads"] * SMALL["head_size"]


def _one(name: str, sets: dict[str, Any]) -> Modification:
    return Modification(name, "Vaswani et al. 2017", sets=sets)


def _heads(count: int) -> Modification:
    """Return a row of another number of heads at the same cost: H x d stays the same."""
    return _one(f"heads-{count}", {"heads": count, "head_size": _HEADS // count})


ABLATIONS: tuple[Modification, ...] = (
    _one("original", {}),
    _one("position-none", {"position": "none"}),
    _one("position-learned", {"position": "learned"}),
    _one("position-relative", {"position": "t5"}),
    _one("position-rope", {"position": "rope"}),
    _one("position-alibi", {"position": "alibi"}),
    _one("residual-none", {"connections": "plain"}),
    _one("residual-highway", {"connections": "highway"}),
    _one("attention-first", {"exceptions": ("1-3: order=AA", "4-6: order=FF")}),
    _one("feed-forward-first", {"exceptions": ("1-3: order=FF", "4-6: order=AA")}),
    _one("sandwich", {"exceptions": ("1: order=AA", "6: order=FF")}),
    _one("attention-only", {"order": "A"}),
    _one("feed-forward-only", {"order": "F"}),
    _one("parallel", {"block": "parallel", "norm_place": "pre"}),
    _one("norm-none", {"norm": "none"}),
    _one("norm-rms", {"norm": "rmsnorm"}),
    _one("norm-before", {"norm_place": "pre"}),
    _one("norm-both", {"norm_place": "sandwich"}),
    _heads(1),
    _heads(2),
    _heads(12),
    _one("warmup-none", {"train.warmup": 0.0}),
    _one("smoothing-none", {"train.smoothing": 0.0}),
    _one("dropout-none", {"dropout": 0.0}),
    _one(
        "recipe-naive",
        {
            "train.warmup": 0.0,
            "train.smoothing": 0.0,
            "dropout": 0.0,
            "train.schedule": "constant",
            "train.betas": (0.9, 0.999),
        },
    ),
    _one("lstm-for-attention", {"mixer": "lstm", "position": "none"}),
    _one("scale-none", {"scale": "none"}),
    _one("scale-linear", {"scale": "linear"}),
    _one("untied", {"tied": False}),
    _one("bias-none", {"bias": False}),
)
