"""Models side by side: one split, one scale, resumable, and a report that a corpus cannot break."""

from __future__ import annotations

import json
import re

import pytest
from comparisons import result, write
from event_streams import notes_of

from nextword.comparison.setup import set_up
from nextword.core.errors import ConfigError, DataError
from nextword.store.manifest import MANIFEST

MODELS = ("ngram-mle", "ngram-stupid", "ngram-add", "ngram")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    text = write(folder / "text.txt")
    setup = set_up([text], MODELS, sets={"model.order": 2}, out=folder / "out")
    return folder, text, *result(setup)


def test_every_model_has_a_row_with_its_figures(finished):
    _, _, found, _ = finished
    assert {row.model for row in found.rows} == set(MODELS)
    best = found.rows[0]
    assert best.model == "ngram"
    assert 0 < best.bits_per_byte < 8
    assert best.train_seconds > 0
    assert best.tokens_per_second > 0
    assert best.size > 1000
    assert len(best.sentences) == 3
    assert best.surprise


def test_scores_and_zeros_are_marked_and_not_ranked(finished):
    rows = {row.model: row for row in finished[2].rows}
    assert "not a probability" in rows["ngram-stupid"].note
    assert not rows["ngram-stupid"].ranks
    assert finished[2].rows[-1].model == "ngram-stupid"
    assert rows["ngram-mle"].bits_per_byte is None
    assert "probability 0 for" in rows["ngram-mle"].note


def test_the_report_is_one_file_that_a_corpus_cannot_break(finished):
    page = finished[2].report.read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"(src|href)\s*=|url\(|@import", page)
    for heading in (
        "Bits per byte",
        "sparsity problem",
        "storage problem",
        "The same sentences",
        "Generated texts",
    ):
        assert heading in page


def test_a_finished_model_is_not_trained_again(finished):
    folder, text, first, _ = finished
    before = (folder / "out" / "ngram" / MANIFEST).stat().st_mtime_ns
    again, events = result(set_up([text], MODELS, sets={"model.order": 2}, out=folder / "out"))
    assert (folder / "out" / "ngram" / MANIFEST).stat().st_mtime_ns == before
    assert json.dumps(again.to_json()) == json.dumps(first.to_json())
    assert sum("already finished" in note for note in notes_of(events)) == len(MODELS)


def test_other_settings_or_another_text_are_trained_anew(tmp_path):
    text = write(tmp_path / "text.txt", 60)
    result(set_up([text], ["ngram"], sets={"model.order": 2}, out=tmp_path / "out"))
    for change in ({"model.order": 3}, {"model.order": 2}):
        if change == {"model.order": 2}:
            write(tmp_path / "text.txt", 80, seed=2)
        _, events = result(set_up([text], ["ngram"], sets=change, out=tmp_path / "out"))
        assert not any("already finished" in note for note in notes_of(events))


def test_everything_goes_to_json_and_to_text(finished):
    found = finished[2]
    values = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert [row["model"] for row in values["models"]] == [row.model for row in found.rows]
    assert len(values["by_order"]["unseen"]) == 5
    assert values["by_order"]["unseen"] == sorted(values["by_order"]["unseen"])
    assert "bits per byte" in str(found)
    assert found.best.endswith("ngram")


def test_a_text_of_its_own_can_be_measured(tmp_path):
    train, test = write(tmp_path / "a.txt", 100), write(tmp_path / "b.txt", 30, seed=5)
    found, _ = result(set_up([train], ["ngram"], valid=[test], sets={"model.order": 2}, out=tmp_path / "out"))
    assert found.rows[0].bytes == (tmp_path / "b.txt").stat().st_size


def test_every_tokenizer_can_be_compared(tmp_path):
    text = write(tmp_path / "a.txt", 120)
    for tokenizer in ("words", "characters", "bytes", "bpe"):
        setup = set_up(
            [text], ["auto"], tokenizer=tokenizer, sets={"model.order": 2}, out=tmp_path / tokenizer
        )
        found, _ = result(setup)
        assert 0 < found.rows[0].bits_per_byte < 8
        assert f"tok:{tokenizer}" in found.rows[0].signature


def test_measuring_on_the_training_text_is_refused(tmp_path):
    text = write(tmp_path / "a.txt", 10)
    with pytest.raises(ConfigError, match="measure on text that is not trained on"):
        set_up([text], ["ngram"], valid=[text])


def test_minutes_are_an_upper_limit_for_each_model(tmp_path):
    text = write(tmp_path / "a.txt", 60)
    found, _ = result(set_up([text], ["ngram"], out=tmp_path / "out", minutes=1e-9))
    assert "stopped after" in found.rows[0].note
    assert not (tmp_path / "out" / "ngram").exists()


@pytest.mark.parametrize(
    ("models", "more", "error", "told"),
    [
        (["ngram-knesser-ney"], {}, ConfigError, "did you mean"),
        (["ngram"], {"minutes": 0}, ConfigError, "minutes"),
        (["ngram"], {"sets": {"model.ordr": 3}}, ConfigError, "model.order"),
    ],
)
def test_mistakes_end_before_anything_is_read(tmp_path, models, more, error, told):
    with pytest.raises(error, match=told):
        set_up([tmp_path / "not-there.txt"], models, **more)


def test_a_missing_text_is_named(tmp_path):
    with pytest.raises(DataError, match=r"not-there\.txt"):
        set_up([tmp_path / "not-there.txt"], ["ngram"])
