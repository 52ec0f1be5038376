"""Made sentences: each reading of an ambiguous word is as frequent, and only what it depends on decides."""

from __future__ import annotations

from collections import Counter

import pytest

from nextword.experiments import grammar
from nextword.experiments.grammar import AFTER, BEFORE, LATER


def test_sentences_follow_from_their_seed():
    assert grammar.tagged(20, 0) == grammar.tagged(20, 0) != grammar.tagged(20, 1)
    assert all(len(each.words) == len(each.tags) == len(each.depends) for each in grammar.tagged(50, 0))


@pytest.mark.parametrize(
    ("word", "cause"), [("her", AFTER), ("that", AFTER), ("to", AFTER), ("before", LATER)]
)
def test_readings_of_a_word_that_depend_on_what_follows_are_as_frequent(word, cause):
    found = Counter(
        tag
        for each in grammar.tagged(3000, 0)
        for own, tag, why in zip(*each, strict=True)
        if own == word and why == cause
    )
    assert len(found) == 2
    one, two = found.values()
    assert 0.8 < one / two < 1.25


def test_the_word_before_decides_between_noun_and_verb():
    for each in grammar.tagged(500, 0):
        for at, cause in enumerate(each.depends):
            if cause == BEFORE:
                assert each.tags[at] == ("VERB" if each.tags[at - 1] == "PRON" else "NOUN")


def test_the_tag_of_a_name_depends_on_a_word_at_the_distance_that_it_says():
    for each in grammar.names(300, 0):
        (at,) = [at for at, word in enumerate(each.words) if word in grammar.NAMES]
        away = int(each.depends[at])
        assert each.tags[at] == {"in": grammar.PLACE, "of": grammar.PERSON}[each.words[at - away]]
        assert not {"in", "of"} & set(each.words[at - away + 1 : at])


def test_the_opinion_of_a_review_takes_denial_into_account():
    for each in grammar.reviews(300, 0):
        clause = " ".join(each.words).split(" and ")[-1].split()
        is_good = any(word in grammar.GOOD for word in clause) != ("not" in clause)
        assert each.words[-1] == (grammar.LIKED if is_good else grammar.DISLIKED)
