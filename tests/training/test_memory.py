"""Sizes that no machine has are refused in one sentence, before anything is read or built."""

from dataclasses import replace

import pytest
from families import NEURAL

from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.runs.settings import groups_of, plan
from nextword.system.machine import read_machine
from nextword.training import memory
from nextword.training.order import Order, settings_of

ABSURD = 10**12
# Counts of steps, tokens or bytes: as many as there are, however many are allowed.
ONLY_LIMITS = {
    "text.min_count", "text.fit_bytes", "train.memory", "train.seed", "train.steps", "train.patience",
    "train.valid_every", "train.valid_tokens", "train.save_every", "train.log_every",
}  # fmt: skip


def sizes():
    for family in catalog.names("model"):
        for group, settings in groups_of(catalog.find("model", family)).items():
            for name, field in settings.model_fields.items():
                if field.annotation is int and f"{group}.{name}" not in ONLY_LIMITS:
                    yield family, f"{group}.{name}"


@pytest.mark.parametrize(("family", "key"), list(sizes()))
def test_absurd_size_is_refused_before_anything_is_built(family, key):
    with pytest.raises(ConfigError, match=f"'{key}' is {ABSURD}; it must be"):
        settings_of(Order(model=family, sets={key: ABSURD}, minutes=1))


@pytest.fixture
def small_machine(monkeypatch):
    machine = replace(read_machine(), memory=8_000_000_000, limit=None)
    monkeypatch.setattr(memory, "read_machine", lambda: machine)


LARGEST = [
    ("transformer", {"model.layers": 4096, "model.hidden": 2048}),
    ("transformer", {"model.hidden": 65536}),
    ("transformer", {"model.heads": 60_000, "model.head_size": 60_000}),
    ("transformer", {"model.inner": 2**20, "model.hidden": 4096}),
    ("transformer", {"model.context": 2**20, "model.position": "learned", "model.hidden": 4096}),
    ("window", {"model.context": 4096, "model.embedding": 65536}),
    *((family, {"model.hidden": 65536}) for family in NEURAL if family not in ("transformer", "window")),
]


@pytest.mark.parametrize(("family", "sets"), LARGEST)
def test_model_larger_than_the_memory_is_refused_with_both_figures(family, sets, small_machine):
    with pytest.raises(ConfigError, match=r"at least [\d.]+ [GT]B of memory, and this machine has 8 GB"):
        settings_of(Order(model=family, sets=sets))


def test_vocabulary_and_batch_count_once_they_are_known(small_machine):
    memory.check_memory(plan("lstm", sets={"model.hidden": 1024}), 30_000, 1_000_000)
    with pytest.raises(ConfigError, match="has 8 GB"):
        memory.check_memory(plan("lstm", sets={"model.hidden": 1024}), 3_000_000, 1_000_000)
    large = {"model.hidden": 1024, "train.batch": 2**20, "train.length": 1024}
    memory.check_memory(plan("lstm", sets=large), 300, 10_000)
    with pytest.raises(ConfigError, match=r"'train.batch' is 1,048,576, 'train.length' is 1,024"):
        memory.check_memory(plan("lstm", sets=large), 300, 1_000_000_000)


@pytest.mark.parametrize("family", NEURAL)
def test_parameters_are_counted_without_building_the_network(family):
    kind = catalog.find("model", family)
    sets = {"layers": 5, "hidden": 24} if "layers" in kind.Settings.model_fields else {"hidden": 24}
    settings = kind.Settings(**sets)
    built = sum(weight.numel() for weight in kind.build(settings, 300, True).parameters())
    assert kind.count_parameters(settings, 300) == built
