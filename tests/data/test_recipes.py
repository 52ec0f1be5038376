"""Files of other shapes become pairs, and what is wrong in them is reported with its line."""

from __future__ import annotations

import pytest

from nextword.core.errors import DataError
from nextword.data.recipes.letters import letters
from nextword.data.recipes.recipe import divide, pairs_of, write_pairs
from nextword.data.recipes.stories import stories
from nextword.data.recipes.trees import number_words, numbered_trees, trees
from nextword.data.recipes.turns import turns


def made(recipe, text):
    return list(recipe("file", enumerate(text.split("\n"), start=1)))


def test_a_story_grows_until_the_next_one_begins():
    text = "1 Mary went home.\n2 Where is Mary? \thome\t1\n3 John sat.\n4 Who sat?\tJohn\t3\n1 A.\n2 B?\tC\t1"
    assert made(stories, text) == [
        ("Mary went home. Where is Mary?", "home"),
        ("Mary went home. John sat. Who sat?", "John"),
        ("A. B?", "C"),
    ]


def test_a_tree_becomes_brackets_over_tags_without_traces_and_function_tags():
    text = """( (S (NP-SBJ-1 (DT The) (NN cat) )
        (VP (VBD was) (VP (VBN seen) (NP (-NONE- *-1) ))) (. .) ))"""
    assert made(trees, text) == [("The cat was seen .", "(S (NP DT NN ) (VP VBD (VP VBN ) ) . )")]


def test_brackets_of_words_keep_their_tags():
    found = made(trees, "( (NP (-LRB- -LRB-) (NN x) (-RRB- -RRB-)) )")
    assert found == [("-LRB- x -RRB-", "(NP -LRB- NN -RRB- )")]


def test_numbered_leaves_are_the_numbers_of_their_words_and_punctuation_keeps_its_tag():
    text = "( (S (NP (DT The) (NN company) ) (, ,) (VP (VBD paid) (NP ($ $) (CD 10.5) )) (. .) ))"
    source, target = made(numbered_trees, text)[0]
    assert source == "@1 ~Athe @2 ~aany @3 , @4 paid @5 $ @6 ~0 @7 ."
    assert target == "(S (NP @1 @2 ) , (VP @4 (NP $ @6 ) ) . )"
    assert number_words("The company , paid $ 10.5 .") == source


@pytest.mark.parametrize(
    ("text", "message"),
    [("(S\n(NP (NN a))", "never closed"), ("(S (NN a)) )", "never opened"), ("hello", "expected '\\('")],
)
def test_a_broken_tree_is_reported_with_its_line(text, message):
    with pytest.raises(DataError, match=message) as raised:
        made(trees, text)
    assert "file:1" in str(raised.value)


def test_letters_and_phones_are_separated_and_variants_join_their_word():
    text = ";;; a comment\ncat\tK AE1 T\ntomato(2)  T AH0 M AA1 T OW2 # rare"
    assert made(letters, text) == [("c a t", "K AE1 T"), ("t o m a t o", "T AH0 M AA1 T OW2")]
    with pytest.raises(DataError, match="a word and its phones"):
        made(letters, "cat")


def test_a_reply_sees_up_to_three_turns_of_its_own_conversation():
    assert made(turns, "a\nb\nc\nd\ne\n\nf\ng")[-3:] == [
        ("a <turn> b <turn> c", "d"), ("b <turn> c <turn> d", "e"), ("f", "g"),
    ]  # fmt: skip


@pytest.mark.parametrize("part", ["spread", "last"])
def test_targets_of_a_source_stay_together(part):
    pairs = [(f"s{at // 2}", f"t{at}") for at in range(40)]
    rest, held = divide(pairs, 0.1, part)
    assert len(held) == 4
    assert sorted(rest + held) == sorted(pairs)
    assert not {source for source, _ in rest} & {source for source, _ in held}
    assert part == "spread" or held[-1] == pairs[-1]


def test_pairs_are_written_a_line_each(tmp_path):
    (tmp_path / "in.txt").write_text("a\tb\nc d\n\ne\nf\n")
    pairs = pairs_of(turns, [str(tmp_path / "in.txt")])
    assert write_pairs(tmp_path / "out.tsv", pairs) == 2
    assert (tmp_path / "out.tsv").read_text() == "a b\tc d\ne\tf\n"


def test_a_file_without_pairs_is_refused(tmp_path):
    (tmp_path / "in.txt").write_text("alone\n")
    with pytest.raises(DataError, match="no pair of texts"):
        pairs_of(turns, [str(tmp_path / "in.txt")])
