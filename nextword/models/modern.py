"""Modifications that came after the table, each alone on its vanilla row: ``--model modern/NAME``."""

from __future__ import annotations

from typing import Any

from nextword.models.modifications import Modification

_SCORES = {"scale": "sqrt"}  # vanilla has the scale in its initial weights, which norms would undo
_NO_POSITION = {"position": "none"}  # mixers that know the order by themselves


def _one(name: str, paper: str, sets: dict[str, Any]) -> Modification:
    return Modification(name, paper, sets=sets)


def _mixer(name: str, paper: str, mixer: str = "") -> Modification:
    return Modification(name, paper, sets={"mixer": mixer or name, **_NO_POSITION})


def _weighing(name: str, paper: str) -> Modification:
    return Modification(name, paper, sets={"weighing": name})


MODERN: tuple[Modification, ...] = (
    _one("rope", "Su et al. 2021", {"position": "rope"}),
    _one("relative-vectors", "Shaw et al. 2018", {"position": "shaw"}),
    _one("relative-content", "Narang et al. 2021", {"position": "t5-content"}),
    _one("alibi", "Press et al. 2022", {"position": "alibi"}),
    _one("no-position", "Kazemnejad et al. 2023", _NO_POSITION),
    _one("grouped-query", "Ainslie et al. 2023", {"kv_heads": 2}),
    _one("multi-query", "Shazeer 2019", {"kv_heads": 1}),
    _one("latent-attention", "DeepSeek-AI 2024", {"mixer": "latent", "position": "rope"}),
    _one("qk-norm", "Henry et al. 2020", {"qk_norm": "rms", **_SCORES}),
    _one("post-norm", "Vaswani et al. 2017", {"norm_place": "post"}),
    _one("sandwich-norm", "Ding et al. 2021", {"norm_place": "sandwich"}),
    _one("peri-norm", "Kim et al. 2025", {"norm_place": "peri"}),
    _one("output-norm", "OLMo 2, 2024", {"norm_place": "output"}),
    _one("deepnorm", "Wang et al. 2022", {"norm_place": "deepnorm", "init": "deepnorm", **_SCORES}),
    _one("dyt", "Zhu et al. 2025", {"norm": "dyt"}),
    _one("parallel-block", "Wang & Komatsuzaki 2021", {"block": "parallel"}),
    _one("relu-squared", "So et al. 2021", {"ffn": "relu2"}),
    _weighing("softcap", "Gemma Team 2024"),
    _weighing("sink", "gpt-oss, 2025"),
    _weighing("off-by-one", "Miller 2023"),
    _weighing("talking-heads", "Shazeer et al. 2020"),
    _one("sliding-window", "Beltagy et al. 2020", {"mixer": "window", "windowed": {"width": 32}}),
    _one(
        "streaming",
        "Xiao et al. 2024",
        {"mixer": "window", "windowed": {"width": 32, "first": 4}, "position": "rope"},
    ),
    _one("differential", "Ye et al. 2024", {"mixer": "differential"}),
    _one("value-residual", "Zhou et al. 2024", {"mixer": "value-residual"}),
    _one("layerscale", "Touvron et al. 2021", {"connections": "layerscale"}),
    _one("hyper-connections", "Zhu et al. 2024", {"connections": "hyper"}),
    _one("hyper-dynamic", "Zhu et al. 2024", {"connections": "hyper-dynamic"}),
    _one(
        "ngpt",
        "Loshchilov et al. 2025",
        {
            "connections": "sphere",
            "norm": "none",
            "qk_norm": "sphere",
            "scale": "grow",
            "ffn": "sphere",
            "inner": 256,
            "stack": "sphere",
            "embedding_kind": "sphere",
            "head": "sphere",
            "init": "sphere",
            "position": "rope",
            "bias": False,
            "output_scale": 1.0,
            "train.weight_decay": 0.0,
        },
    ),
    _one(
        "shared-experts",
        "Dai et al. 2024",
        {
            "exceptions": ("every 3: ffn=experts",),
            "experts": {"count": 8, "capacity": 2.0, "inner": 96, "shared": 2},
        },
    ),
    _one("further-tokens", "Gloeckle et al. 2024", {"ahead": 1}),
    _one("z-loss", "Chowdhery et al. 2022", {"train.z_loss": 1e-4}),
    _one("muon", "Jordan et al. 2024", {"train.optimizer": "muon"}),
    _mixer("linear-attention", "Katharopoulos et al. 2020", "linear"),
    _mixer("retnet", "Sun et al. 2023"),
    _mixer("gated-linear", "Yang et al. 2024", "gla"),
    _mixer("mamba2", "Dao & Gu 2024"),
    _mixer("gated-delta", "Yang et al. 2024", "delta"),
    _mixer("rwkv7", "Peng et al. 2025"),
    _mixer("mlstm", "Beck et al. 2024"),
    _mixer("slstm", "Beck et al. 2024"),
    _mixer("sru", "Lei et al. 2018"),
    _mixer("qrnn", "Bradbury et al. 2017"),
    _mixer("mingru", "Feng et al. 2024"),
    _mixer("minlstm", "Feng et al. 2024"),
    _one(
        "together",
        "Touvron et al. 2023; Qwen Team 2025",
        {
            "position": "rope",
            "norm": "rmsnorm",
            "qk_norm": "rms",
            "ffn": "swiglu",
            "inner": 256,
            "bias": False,
            **_SCORES,
        },
    ),
)
