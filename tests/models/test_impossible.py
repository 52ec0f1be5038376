"""Any two parts of the catalog: together they learn and read word by word, or one sentence names both."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
import torch

from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.models.transformer import TRANSFORMER, TransformerSettings

V, T = 30, 9
FIELDS = {
    "position": "position", "norm": "norm", "norm_place": "norm_place", "qk_norm": "qk_norm", "ffn": "ffn",
    "weighing": "weighing", "scale": "scale", "mixer": "mixer", "connections": "join", "block": "block",
    "stack": "stack", "embedding_kind": "embedding", "head": "head", "init": "init",
}  # fmt: skip
SIZES: dict[str, Any] = {"layers": 3, "hidden": 16, "heads": 2, "context": 12}


def pairs(count: int, seed: int) -> list[tuple[str, str, str, str]]:
    """Draw pairs of settings of different slots, each with one of our parts."""
    chance, found = random.Random(seed), []
    for _ in range(count):
        one, other = chance.sample(list(FIELDS), 2)
        names = [chance.choice(list(catalog.SLOTS[FIELDS[each]])) for each in (one, other)]
        found.append((one, names[0], other, names[1]))
    return found


def made(**values: str) -> TransformerSettings | str:
    try:
        return TransformerSettings(**SIZES, **values)
    except (ConfigError, ValueError) as error:
        return str(error)


def built(settings: TransformerSettings) -> Any:
    torch.manual_seed(0)
    try:
        return TRANSFORMER.build(settings, V, False)
    except ConfigError as error:
        return str(error)


def refusal(**values: str) -> str:
    """Return why these are refused; empty if they are not."""
    settings = made(**values)
    network = settings if isinstance(settings, str) else built(settings)
    return network if isinstance(network, str) else ""


def check(one: str, a: str, other: str, b: str) -> None:
    why = refusal(**{one: a, other: b})
    if why:
        if not refusal(**{one: a}) and not refusal(**{other: b}):  # it is the pair
            assert f"'model.{one}'" in why, why
            assert f"'model.{other}'" in why, why
            assert len(re.findall(r"[.] [A-Z]", why)) == 0, why  # one sentence
        return
    settings = made(**{one: a, other: b})
    assert isinstance(settings, TransformerSettings)
    network = built(settings)
    network.prepare(torch.arange(V).float() + 1)
    ids_BT = torch.randint(3, V, (2, T), generator=torch.Generator().manual_seed(1))
    rule = torch.optim.SGD(network.parameters(), 1e-2)
    for _ in range(2):
        features, _ = network.read(ids_BT[:, :-1], network.start(2))
        loss = network.head.loss(features.flatten(0, 1), ids_BT[:, 1:].flatten())
        assert bool(torch.isfinite(loss))
        rule.zero_grad()
        (loss / 16).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        rule.step()
    network.eval()
    with torch.inference_mode():
        at_once, _ = network.read(ids_BT, network.start(2))
        state = network.start(2)
        for t in range(T):
            one_BTD, state = network.read(ids_BT[:, t : t + 1], state)
            torch.testing.assert_close(one_BTD[:, 0], at_once[:, t], atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("pair", pairs(30, seed=0), ids=" ".join)
def test_two_parts_work_together_or_say_why_not(pair):
    check(*pair)


@pytest.mark.slow
@pytest.mark.parametrize("pair", pairs(400, seed=1), ids=" ".join)
def test_any_two_parts_work_together_or_say_why_not(pair):
    check(*pair)
