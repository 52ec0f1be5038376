"""A neural family: settings that its weights cannot belong to are refused before a network is built."""

from types import SimpleNamespace

import pytest

from nextword.core import catalog
from nextword.core.errors import DamagedError


@pytest.mark.parametrize(
    ("family", "sizes"),
    [
        ("lstm", {"hidden": 65536}),
        ("transformer", {"layers": 4096, "hidden": 512}),
        ("window", {"context": 4096, "embedding": 65536}),
    ],
)
def test_settings_of_a_far_larger_model_than_the_file_are_refused(family, sizes, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(bytes(100_000))
    folder = SimpleNamespace(file=lambda name: path)
    made = catalog.find("model", family)
    with pytest.raises(DamagedError, match=r"has 100,000 bytes, but the settings of its run"):
        made.load(folder, made.Settings(**sizes), SimpleNamespace(vocab_size=300, closed=True))
