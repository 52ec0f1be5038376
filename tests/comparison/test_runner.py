"""The time of a run is that of training, not of what happens once on a machine."""

from __future__ import annotations

from itertools import chain, repeat

from comparisons import result, write
from event_streams import notes_of

from nextword.comparison.setup import set_up
from nextword.ngram import estimation


def test_a_count_model_whose_kernels_were_compiled_is_timed_again(tmp_path, monkeypatch):
    text = write(tmp_path / "text.txt", 60)
    cold = chain([True], repeat(False))
    monkeypatch.setattr(estimation, "SMALL", 0)
    monkeypatch.setattr(estimation, "_cold", lambda: next(cold))
    monkeypatch.setattr(estimation, "_fit_fast", _as_if_compiled)
    found, told = result(set_up([text], ["ngram"], sets={"model.order": 2}, out=tmp_path / "out"))
    assert any("trained again, because its time included compilation" in note for note in notes_of(told))
    assert found.rows[0].ranks


def _as_if_compiled(ids, vocab_size, settings, closed):
    return estimation._smoothed(estimation.count(ids, vocab_size, settings.order), settings, closed)
