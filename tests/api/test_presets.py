"""``presets`` shows what each model changes, as ``--set`` takes it."""

from nextword.api.presets import presets
from nextword.models import presets as models


def test_modification_shows_its_changes_of_the_row_it_is_compared_with():
    rows = {row["name"]: row for row in presets()}
    assert rows["narang/swiglu"]["changes"] == "model.ffn=swiglu model.inner=256"
    assert rows["narang/product-key-memory"]["changes"].startswith(
        'model.exceptions=["5: ffn=memory"] model.memory.'
    )
    assert rows["modern/together"]["changes"].endswith("model.bias=false model.inner=256")
    assert rows["lstm-tiny"]["changes"] == rows["lstm-tiny"]["settings"]


def test_base_with_the_changes_is_the_preset():
    for name, preset in models.modifications().items():
        base = models.modifications()[preset.base].settings if preset.base else {}
        assert {**base, **preset.changes} == preset.settings, name
