"""Estimation within a memory limit gives the same files as in memory."""

from __future__ import annotations

import numpy as np
import pytest
from event_streams import result_of
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_texts import VOCABULARY, texts, zipf_text

from nextword.core.errors import ConfigError
from nextword.core.family import Budget
from nextword.ngram import estimation
from nextword.ngram.limited import buckets, mapped
from nextword.ngram.settings import NgramSettings

SMOOTHINGS = [
    "mle",
    "add",
    "laplace",
    "backoff",
    "stupid",
    "witten-bell",
    "absolute",
    "kneser-ney",
    "modified-kneser-ney",
]


def within(ids, words, settings, tmp_path, memory=0):
    memory = memory or 2_000_000_000 + mapped.resident()  # this process holds what other tests left
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    budget = Budget(memory=memory, folder=tmp_path, scratch=scratch)
    made = result_of(buckets.fit(ids, words, settings, False, budget))
    assert not list(scratch.glob("bucket-*"))
    return made


def assert_equal(a, b):
    assert a.trie.sizes == b.trie.sizes
    for name, array in a.trie.named().items():
        np.testing.assert_allclose(array, b.trie.named()[name], rtol=2e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_many_small_buckets_equal_one_pass_in_memory(smoothing, text, tmp_path, monkeypatch):
    monkeypatch.setattr(buckets, "_room", lambda *_: 20_000)
    settings = NgramSettings(order=4, smoothing=smoothing)
    assert_equal(within(text, 60, settings, tmp_path), estimation.build(text, 60, settings))


@settings(max_examples=30, deadline=None)
@given(ids=texts(most=20), order=st.integers(1, 5), room=st.sampled_from([300, 2_000]))
def test_ngrams_that_lie_across_buckets_are_joined(ids, order, room, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "_room", lambda *_: room)
        wanted = NgramSettings(order=order)
        found = within(ids, VOCABULARY, wanted, tmp_path_factory.mktemp("buckets"))
    assert_equal(found, estimation.build(ids, VOCABULARY, wanted))


def test_worker_processes_give_the_same(tmp_path, monkeypatch):
    ids = zipf_text(2000, 500, seed=3)
    monkeypatch.setattr(buckets, "_workers", lambda *_: (2, 200_000))
    settings = NgramSettings(order=3)
    assert_equal(within(ids, 500, settings, tmp_path), estimation.build(ids, 500, settings))


def test_ids_are_read_from_their_file(text, tmp_path, monkeypatch):
    monkeypatch.setattr(buckets, "_room", lambda *_: 20_000)
    text.tofile(tmp_path / "ids")
    stored = np.memmap(tmp_path / "ids", dtype=np.int32, mode="r")
    settings = NgramSettings(order=3)
    assert_equal(within(stored, 60, settings, tmp_path), estimation.build(text, 60, settings))


@pytest.mark.parametrize(
    "given", [{"smoothing": "katz"}, {"prune": 1}, {"prune_entropy": 1e-7}, {"kenlm_compat": True}]
)
def test_what_needs_all_counts_is_refused(given, text, tmp_path):
    with pytest.raises(ConfigError, match=r"does not work with 'train\.memory'"):
        within(text, 60, NgramSettings(**given), tmp_path)


def test_a_limit_the_vocabulary_breaks_is_named(text, tmp_path):
    with pytest.raises(ConfigError, match=r"'train\.memory' is .* set at least"):
        within(text, 50_000_000, NgramSettings(), tmp_path, memory=300_000_000)
