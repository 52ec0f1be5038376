"""BLEU and chrF are sacrebleu's, and the counts of sentences add up to them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.core.errors import DataError, MissingPart
from nextword.evaluation.pairs.bleu import bleu_of, choose_splitter, chrf_of, counts_of_words, overlap

sacrebleu = pytest.importorskip("sacrebleu")

WRITTEN = ["the cat sat on the mat .", "a dog", "", "there is a cat on the mat, twice!"]
RIGHT = [["the cat is on the mat .", "there is a cat on the mat ."], ["a dog barks"], ["nothing"],
         ["There is a cat on the mat, twice!"]]  # fmt: skip
texts = st.lists(st.text("ab c.", max_size=12), min_size=1, max_size=4)


def test_scores_and_signatures_are_those_of_sacrebleu():
    found = overlap(WRITTEN, RIGHT)
    streams = [[each[0] for each in RIGHT], [each[1] if len(each) > 1 else None for each in RIGHT]]
    bleu, chrf = sacrebleu.metrics.BLEU(), sacrebleu.metrics.CHRF()
    assert found.bleu == bleu.corpus_score(WRITTEN, streams).score
    assert found.chrf == chrf.corpus_score(WRITTEN, streams).score
    version = sacrebleu.__version__
    assert found.signature == f"BLEU|nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert found.chrf_signature == f"chrF2|nrefs:var|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"


@given(written=texts, right=st.lists(texts, min_size=4, max_size=4))
def test_counts_of_sentences_add_up_to_the_scores(written, right):
    found = overlap(written, right[: len(written)])
    assert bleu_of(found.bleu_N10.sum(axis=0, keepdims=True))[0] == pytest.approx(found.bleu)
    assert chrf_of(found.chrf_N18.sum(axis=0, keepdims=True))[0] == pytest.approx(found.chrf)


def test_chrf_of_a_sentence_is_that_of_sacrebleu():
    found = overlap(WRITTEN, RIGHT)
    expected = [sacrebleu.sentence_chrf(text, each).score for text, each in zip(WRITTEN, RIGHT, strict=True)]
    assert chrf_of(found.chrf_N18) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("reference", "splitter"),
    [("The cat sat.", "13a"), ("राम ने रावण को मारा ।", "13a"), ("猫坐在垫子上。", "zh"),
     ("ネコが座った", "char"), ("แมวนั่งบนเสื่อ", "char"), ("", "13a"), ("12, 13", "13a")],
)  # fmt: skip
def test_the_script_of_the_references_chooses_the_splitter(reference, splitter):
    assert choose_splitter([[reference]]) == splitter


def test_chinese_is_not_one_word():
    found = overlap(["猫坐在红垫子上。"], [["猫坐在垫子上。"]])
    assert "tok:zh" in found.signature
    assert found.bleu > 30


def test_a_perfect_translation_has_100():
    found = overlap(["a cat sat on the mat"], [["a cat sat on the mat"]])
    assert (found.bleu, found.chrf) == (pytest.approx(100), pytest.approx(100))


def test_different_numbers_are_refused_with_both():
    with pytest.raises(DataError, match="3 hypotheses and references for 2"):
        overlap(["a", "b", "c"], [["a"], ["b"]])
    with pytest.raises(DataError, match="no sentence"):
        overlap([], [])
    with pytest.raises(DataError, match="sentence 2 has no list of references"):
        overlap(["a", "b"], [["a"], []])


def test_a_missing_package_gives_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingPart, match=r"pip install 'nextword\[eval\]'"):
        overlap(["a"], [["a"]])


def test_counts_are_arrays_of_one_row_a_sentence():
    found = overlap(WRITTEN, RIGHT)
    assert (found.bleu_N10.shape, found.chrf_N18.shape) == ((4, 10), (4, 18))
    assert np.all(found.bleu_N10[:, :4] <= found.bleu_N10[:, 4:8])


def test_words_that_are_split_already_have_the_same_bleu():
    both = zip(WRITTEN, RIGHT, strict=True)
    counts = [counts_of_words(text.split(), each[0].split()) for text, each in both]
    expected = sacrebleu.metrics.BLEU(tokenize="none").corpus_score(WRITTEN, [[each[0] for each in RIGHT]])
    assert bleu_of(np.array(counts).sum(axis=0, keepdims=True))[0] == pytest.approx(expected.score)
