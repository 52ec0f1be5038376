"""The published table: what Narang et al. 2021 measured of each row, as the lecture shows it.

[MAUSAM "Do Transformer Modifications Transfer Across Implementations and Applications?"]: an encoder-decoder
of 223 M weights on C4. The lecture's text is damaged where it says 1.807 for 6 layers (its neighbours are
1.831 to 1.847, and 5 is read as 0 on that line), so that row has no number here.
"""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """One row of the table."""

    speed: float  # steps per second, on TPUs
    early: float  # loss after an eighth of the steps
    final: float | None  # loss at the end


PUBLISHED: dict[str, Published] = {
    "vanilla": Published(3.50, 2.182, 1.838),
    "gelu": Published(3.58, 2.179, 1.838),
    "swish": Published(3.62, 2.186, 1.847),
    "elu": Published(3.56, 2.270, 1.932),
    "selu": Published(3.55, 2.315, 1.948),
    "sigmoid": Published(3.63, 2.291, 1.867),
    "softplus": Published(3.47, 2.207, 1.850),
    "glu": Published(3.59, 2.174, 1.814),
    "geglu": Published(3.55, 2.130, 1.792),
    "reglu": Published(3.57, 2.145, 1.803),
    "swiglu": Published(3.53, 2.127, 1.789),
    "liglu": Published(3.59, 2.149, 1.798),
    "rms-norm": Published(3.68, 2.167, 1.821),
    "rezero": Published(3.51, 2.262, 1.939),
    "rezero-layernorm": Published(3.26, 2.223, 1.858),
    "rezero-rms-norm": Published(3.34, 2.221, 1.875),
    "fixup": Published(2.95, 2.382, 2.067),
    "24-layers": Published(3.33, 2.200, 1.843),
    "18-layers": Published(3.38, 2.185, 1.831),
    "8-layers": Published(3.69, 2.190, 1.847),
    "6-layers": Published(3.70, 2.201, None),
    "block-sharing": Published(3.91, 2.497, 2.164),
    "block-sharing-factorized": Published(4.21, 2.631, 2.183),
    "block-sharing-factorized-shared": Published(4.37, 2.907, 2.385),
    "encoder-block-sharing": Published(3.68, 2.298, 1.929),
    "decoder-block-sharing": Published(3.70, 2.352, 2.082),
    "factorized-embedding": Published(3.80, 2.208, 1.855),
    "factorized-shared-embeddings": Published(3.92, 2.320, 1.952),
    "tied-inputs": Published(3.55, 2.192, 1.840),
    "tied-decoder": Published(3.57, 2.187, 1.827),
    "untied": Published(3.53, 2.195, 1.834),
    "adaptive-input": Published(3.55, 2.250, 1.899),
    "adaptive-softmax": Published(3.60, 2.364, 1.982),
    "adaptive-softmax-wide": Published(3.43, 2.229, 1.914),
    "mixture-of-softmaxes": Published(2.24, 2.227, 1.821),
    "transparent-attention": Published(3.33, 2.181, 1.874),
    "dynamic-convolution": Published(2.65, 2.403, 2.047),
    "lightweight-convolution": Published(4.07, 2.370, 1.989),
    "evolved-transformer": Published(3.09, 2.220, 1.863),
    "synthesizer-dense": Published(3.47, 2.334, 1.962),
    "synthesizer-dense-plus": Published(3.22, 2.191, 1.840),
    "synthesizer-dense-plus-alpha": Published(3.01, 2.180, 1.828),
    "synthesizer-factorized": Published(3.94, 2.341, 1.968),
    "synthesizer-random": Published(4.08, 2.326, 2.009),
    "synthesizer-random-plus": Published(3.63, 2.189, 1.842),
    "synthesizer-random-plus-alpha": Published(3.42, 2.186, 1.828),
    "universal-transformer": Published(0.88, 2.406, 2.053),
    "mixture-of-experts": Published(3.20, 2.148, 1.785),
    "switch-transformer": Published(3.18, 2.135, 1.758),
    "funnel-transformer": Published(4.30, 2.288, 1.918),
    "weighted-transformer": Published(0.59, 2.378, 1.989),
    "product-key-memory": Published(0.25, 2.155, 1.798),
}


def of(preset: str) -> Published | None:
    """Return what was published of a preset such as ``narang/gelu``; None for all others."""
    group, _, name = preset.rpartition("/")
    return PUBLISHED.get(name) if group == "narang" else None
