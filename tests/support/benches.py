"""A small bench: tiny rows, few steps."""

from __future__ import annotations

from nextword.comparison.bench import bench as story
from nextword.comparison.bench import plan as planning
from nextword.comparison.bench.setup import set_up

SMALL = {
    "model.layers": 1, "model.hidden": 16, "model.heads": 2, "model.head_size": 8, "model.context": 16,
    "model.inner": 32, "train.batch": 4, "train.threads": 1, "train.precision": "fp32", "text.size": 300,
}  # fmt: skip


def quick(patch):
    """Try fewer rates, time fewer steps."""
    patch.setattr(planning, "RATES", (1e-2, 3e-2))
    patch.setattr(planning, "_FEWEST", 4)
    patch.setattr(planning, "_TURNS", 1)
    patch.setattr(planning, "_TIMED", 0.0)
    patch.setattr(story, "PILOT", 2)


def setup_of(folder, rows="swiglu,elu", **more):
    sets = SMALL | more.pop("sets", {})
    return set_up([folder / "text.txt"], rows, sets=sets, out=folder / "out", **{"tokens": 1500, **more})
