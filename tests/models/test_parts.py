"""Settings of parts: groups within a group, layers that differ, options that would change nothing."""

from __future__ import annotations

import pytest
import torch

from nextword.core.config import build, keys, parse_sets, to_toml
from nextword.core.errors import ConfigError
from nextword.models.transformer import TRANSFORMER, TransformerSettings

GROUPS = {"model": TransformerSettings}


def made(*sets: str) -> TransformerSettings:
    return build(GROUPS, parse_sets(sets))["model"]


def test_options_of_a_part_are_set_by_a_dotted_name_and_written_where_the_part_is_chosen():
    settings = made("model.position=t5", "model.buckets.count=8")
    assert settings.buckets.count == 8
    assert "model.buckets.count" in keys(GROUPS)
    assert "[model.buckets]\ncount = 8" in to_toml({"model": settings}, {})
    assert "buckets" not in to_toml({"model": made()}, {})


def test_a_whole_group_can_be_given_as_a_table():
    assert build(GROUPS, {"model": {"position": "t5", "buckets": {"count": 6}}})["model"].buckets.count == 6


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["model.buckets.count=8"], ["'model.buckets'", "this model does not have", "t5"]),
        (["model.position=t5", "model.buckets.count=1"], ["'model.buckets.count' is 1", "2 or more"]),
        (["model.buckets.cuont=8"], ["did you mean 'model.buckets.count'"]),
        (["model.order=AXF"], ["'model.order' has an X", "reads none"]),
        (["model.order=AB"], ["'model.order' is 'AB'", "F (feed-forward)"]),
        (['model.exceptions=["each 4: ffn=relu"]'], ["'each 4: ffn=relu'", "every 4: ffn=switch"]),
        (['model.exceptions=["2: ffn=rleu"]'], ["did you mean 'relu'"]),
        (['model.exceptions=["2: hidden=8"]'], ["layers may differ in"]),
    ],
)
def test_what_does_not_work_is_said_in_one_sentence(sets, words):
    with pytest.raises(ConfigError) as error:
        made(*sets)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert "\n" not in str(error.value)


def test_layers_differ_where_the_settings_say_so():
    settings = made(
        "model.layers=4", "model.hidden=16", 'model.exceptions=["every 2: ffn=swiglu", "1: order=A inner=8"]'
    )
    blocks = TRANSFORMER.build(settings, 20, False).stack.blocks
    assert [type(getattr(block, "ffn", None)).__name__ for block in blocks] == [
        "NoneType", "SwiGLU", "ReLU2", "SwiGLU"
    ]  # fmt: skip


@pytest.mark.parametrize("order", ["AF", "FA", "AAFF", "A", "F", "FAF"])
def test_parts_in_any_order_read_word_by_word_as_at_once(order):
    torch.manual_seed(0)
    settings = TransformerSettings(layers=2, hidden=16, heads=2, context=8, order=order, init="gpt2")
    network = TRANSFORMER.build(settings, 20, False).eval()
    ids_BT = torch.randint(3, 20, (2, 13))
    with torch.inference_mode():
        at_once, _ = network.read(ids_BT, network.start(2))
        state = network.start(2)
        for t in range(13):
            one, state = network.read(ids_BT[:, t : t + 1], state)
            torch.testing.assert_close(one[:, 0], at_once[:, t], atol=1e-5, rtol=1e-4)
