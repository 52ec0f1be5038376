"""Brackets are counted as EVALB counts them, and only trees are trees."""

from __future__ import annotations

import pytest

from nextword.evaluation.pairs.brackets import PARSE, compare_trees, fitted, read_tree, right_branching

RIGHT = "(S (NP-SBJ DT NN ) (VP VBZ (PRT RP ) ) . )"


def values(hypotheses, references):
    return {name: each.value for name, each in PARSE.find(hypotheses, references).counted.items()}


def test_a_tree_is_read_with_its_leaves():
    tree = read_tree(RIGHT)
    assert tree is not None
    assert tree.leaves == ("DT", "NN", "VBZ", "RP", ".")
    assert set(tree.brackets) == {("S", 0, 5), ("NP-SBJ", 0, 2), ("VP", 2, 4), ("PRT", 3, 4)}


@pytest.mark.parametrize(
    "text",
    ["", "NN", "(S NN", "(S NN ) )", "(S NN ) (S NN )", "(S ) ", "NN (S NN )", "(S NN ) NN", ")", "( )"],
)
def test_what_is_not_one_tree_is_refused(text):
    assert read_tree(text) is None


def test_brackets_by_hand():
    # of S, NP, VP and a single-word NP, written instead of ADVP: S, NP and VP are right
    assert compare_trees("(S (NP DT NN ) (VP VBZ (NP RP ) ) . )", RIGHT) == (3, 4, 4, True)


def test_function_tags_and_the_two_names_of_a_particle_are_the_same():
    assert compare_trees("(S (NP DT NN ) (VP VBZ (ADVP RP ) ) . )", RIGHT) == (4, 4, 4, True)


def test_punctuation_counts_for_no_span():
    # the full stop stands inside the verb phrase, or has a bracket of its own: EVALB does not see it
    assert compare_trees("(S (NP DT NN ) (VP VBZ (PRT RP ) . ) )", RIGHT) == (4, 4, 4, True)
    assert compare_trees("(S (NP DT NN ) (VP VBZ (PRT RP ) ) (X . ) )", RIGHT) == (4, 4, 4, True)


def test_a_bracket_matches_once():
    twice = "(S (NP (NP DT NN ) ) (VP VBZ RP ) )"
    assert compare_trees(twice, "(S (NP DT NN ) (VP VBZ RP ) )") == (3, 4, 3, True)


def test_another_number_of_words_is_no_tree_over_the_sentence():
    assert compare_trees("(S (NP DT NN ) (VP VBZ ) . )", RIGHT) == (0, 0, 4, False)


def test_outputs_that_are_no_trees_lower_f1_and_evalb_leaves_them_out():
    found = values([RIGHT, "(S (NP"], [[RIGHT], [RIGHT]])
    # repaired, the second is (S (NP) XX XX XX XX XX): its S is right
    assert found == {
        "bracket_f1": pytest.approx(2 * 4 / (4 + 8)), "bracket_f1_of_trees": 1.0, "trees": 0.5,
        "bracket_f1_repaired": pytest.approx(2 * 5 / (5 + 8)),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words", "tree"),
    [
        ("(S (NP DT NN ) (VP VBZ ) )", 3, "(S (NP DT NN ) (VP VBZ ) )"),
        ("(S (NP DT NN ) (VP VBZ", 3, "(S (NP DT NN ) (VP VBZ ) )"),
        ("(S (NP DT NN ) ) (VP VBZ )", 3, "(S (NP DT NN ) (VP VBZ ) )"),
        ("(S (NP DT NN ) (VP VBZ VBZ (NP NN ) ) )", 3, "(S (NP DT NN ) (VP VBZ ) )"),
        ("(S (NP DT NN ) )", 4, "(S (NP DT NN ) XX XX )"),
        ("DT NN", 2, "(S DT NN )"),
        (") )", 1, "(S XX )"),
        ("", 2, "(S XX XX )"),
    ],
)
def test_an_output_is_made_to_fit_the_words(text, words, tree):
    assert fitted(text, words) == tree
    assert len(read_tree(tree).leaves) == words


@pytest.mark.parametrize(
    ("leaves", "parse"),
    [("a", "(S a )"), ("a b", "(S a b )"), ("a b c", "(S a (VP b c ) )"),
     ("a b c d .", "(S a (VP b (VP c d ) ) . )")],
)  # fmt: skip
def test_right_branching_ends_every_bracket_with_the_sentence(leaves, parse):
    assert right_branching(leaves.split()) == parse
    assert read_tree(parse) is not None


@pytest.mark.agree
@pytest.mark.needs("PYEVALB")
def test_brackets_agree_with_pyevalb():
    from PYEVALB import parser, scorer

    read = parser.create_from_bracket_string
    one = "(S (NP (DT a) (NN b)) (VP (VBZ c) (NP (NN d) (NN e))))"
    two = "(S (NP (DT a) (NN b)) (VP (VBZ c) (NP (NN d)) (NP (NN e))))"
    found = scorer.Scorer().score_trees(read(one), read(two))
    right = "(S (NP DT NN ) (VP VBZ (NP NN NN ) ) )"
    mine = compare_trees("(S (NP DT NN ) (VP VBZ (NP NN ) (NP NN ) ) )", right)
    assert mine[:3] == (found.matched_brackets, found.test_brackets, found.gold_brackets)
