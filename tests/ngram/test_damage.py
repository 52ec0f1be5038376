"""Damaged arrays: our own error or a number, never a crash or another exception."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nextword.core.errors import NextwordError
from nextword.ngram import estimation
from nextword.ngram.arrays import Trie
from nextword.ngram.fast import scoring
from nextword.ngram.model import NgramModel
from nextword.ngram.settings import NgramSettings


@pytest.fixture(scope="module")
def saved(tmp_path_factory, text) -> Path:
    folder = tmp_path_factory.mktemp("arrays")
    for name, array in estimation.build(text, 60, NgramSettings(order=3)).trie.named().items():
        np.save(folder / name, array)
    return folder


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_array_gives_our_error_or_a_number(data, saved, text, tmp_path):
    names = sorted(path.name for path in saved.iterdir())
    hurt = data.draw(st.sampled_from(names))
    for name in names:
        content = bytearray((saved / name).read_bytes())
        if name == hurt:
            for _ in range(data.draw(st.integers(1, 8))):
                content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
            content = content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))]
        (tmp_path / name).write_bytes(content)
    try:
        model = NgramModel(Trie.load(tmp_path, 3, "shorter"))
        ids = text % model.vocab_size
        state = model.score(ids[None, 1:9], np.array([8]))[1]
        with np.errstate(all="ignore"):
            model.next(state)
            found = [model.explain_packed(ids)[0], scoring.score_packed(model, ids)]
            model.populate()
            found.append(scoring.score_packed(model, ids))
    except NextwordError:
        return
    assert all(len(logp) == len(text) for logp in found)
