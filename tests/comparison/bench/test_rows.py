"""Which rows a bench has, and what they have in common."""

from __future__ import annotations

import pytest

from nextword.comparison.bench.published import PUBLISHED, of
from nextword.comparison.bench.rows import SETS, rows_of
from nextword.comparison.bench.setup import budget_of
from nextword.core.errors import ConfigError
from nextword.models import presets
from nextword.models.modifications import TABLE


def test_the_table_has_all_its_rows_and_names_those_that_need_an_encoder():
    rows = rows_of("narang")
    assert len(rows.all) == len(TABLE) == 52
    assert rows.baseline.preset == "narang/vanilla"
    assert {row.preset for row in rows.missing} == {
        f"narang/{name}"
        for name in ("encoder-block-sharing", "decoder-block-sharing", "tied-inputs", "tied-decoder")
    }
    assert all("no encoder" in row.missing for row in rows.missing)


def test_the_baseline_comes_first_and_once():
    assert [row.title for row in rows_of("swiglu,vanilla,gelu").all] == ["Vanilla", "SwiGLU", "GeLU"]
    assert [row.title for row in rows_of(["rope"]).all] == ["Vanilla", "rope"]
    assert rows_of("ablations").baseline.preset == "ablations/original"


def test_any_model_that_learns_by_steps_can_be_a_row():
    assert [row.preset for row in rows_of("gelu, lstm").all] == ["narang/vanilla", "narang/gelu", "lstm"]


def test_an_unknown_row_suggests_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'swiglu'"):
        rows_of("swigluu")
    with pytest.raises(ConfigError, match="names nothing"):
        rows_of(" , ")


def test_every_row_that_is_trained_is_a_preset():
    for name in SETS:
        for row in rows_of(name).trained:
            assert presets.find(row.preset).family == "transformer"


def test_the_published_table_has_every_row_once():
    assert set(PUBLISHED) == {each.name for each in TABLE}
    best = min(each.final for each in PUBLISHED.values() if each.final)
    assert of("narang/switch-transformer").final == best
    assert of("modern/rope") is None


@pytest.mark.parametrize(
    ("minutes", "tokens", "match", "said"),
    [
        (None, None, None, "either --tokens N or --minutes M"),
        (1.0, 10, None, "either --tokens N or --minutes M"),
        (0.0, None, None, "'minutes' is 0.0"),
        (None, 0, None, "'tokens' is 0"),
        (None, 10, "size", "unknown match 'size'"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(minutes, tokens, match, said):
    with pytest.raises(ConfigError, match=said):
        budget_of(minutes, tokens, match)


def test_what_rows_have_in_common_follows_from_the_budget():
    assert budget_of(2.0, None, None).match == "minutes"
    assert budget_of(None, 1000, None).match == "tokens"
    assert budget_of(None, 1000, "parameters").describe().endswith("as many parameters for each other run")
