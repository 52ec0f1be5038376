"""Ids of a text: the same in memory, on disk, from a pipe and from the cache."""

import numpy as np
import pytest
from event_streams import until_return
from small_texts import TWO_DOCUMENTS

from nextword.data.encode import encode
from nextword.data.source import Source
from nextword.runs.settings import plan

TEXT = TWO_DOCUMENTS * 20


def run_encode(settings, source, scratch=None):
    return until_return(encode(source, settings.text, settings.data, scratch))[0]


@pytest.mark.parametrize("tokenizer", ["words", "characters", "bytes", "bpe", "unigram"])
def test_ids_on_disk_are_the_ids_in_memory(tokenizer, two_documents, tmp_path):
    settings = plan(
        "ngram", tokenizer=tokenizer, sets={"text.size": 300} if tokenizer in ("bpe", "unigram") else {}
    )
    source = Source.for_training([two_documents], settings.data)
    first = run_encode(settings, source)
    second = run_encode(settings, source, tmp_path)
    assert np.array_equal(first.ids, second.ids)
    assert first.facts == second.facts
    assert first.tokenizer.decode(i for i in first.ids if i > 2).split() == TEXT.split()


def test_ids_of_subwords_are_found_again_by_content(two_documents, tmp_path, monkeypatch):
    monkeypatch.setenv("NEXTWORD_CACHE", str(tmp_path / "cache"))
    settings = plan("ngram", tokenizer="bpe", sets={"text.size": 280})
    first = run_encode(settings, Source.for_training([two_documents], settings.data))
    kept = list((tmp_path / "cache" / "ids").iterdir())
    assert len(kept) == 1
    again = run_encode(settings, Source.for_training([two_documents], settings.data))
    assert np.array_equal(first.ids, again.ids)
    assert list((tmp_path / "cache" / "ids").iterdir()) == kept


@pytest.mark.parametrize("tokenizer", ["characters", "bpe"])
def test_standard_input_is_kept_for_a_second_pass(tokenizer, two_documents, monkeypatch):
    settings = plan("ngram", tokenizer=tokenizer, sets={"text.size": 280})
    with open(two_documents) as file:
        monkeypatch.setattr("sys.stdin", file)
        piped = run_encode(settings, Source.for_training(["-"], settings.data))
    assert np.array_equal(
        piped.ids, run_encode(settings, Source.for_training([two_documents], settings.data)).ids
    )


def test_unit_can_be_set_against_the_tokenizer_s_own(two_documents):
    for tokenizer, unit, sequences in (("words", "document", 1), ("characters", "line", TEXT.count("\n"))):
        settings = plan("ngram", tokenizer=tokenizer, sets={"data.unit": unit})
        found = run_encode(settings, Source.for_training([two_documents], settings.data))
        assert (found.tokenizer.unit, found.facts.sequences) == (unit, sequences)
