"""Questions with one right answer: what is asked, and what a model that knows, or does not, gets right."""

import gzip

import pytest
from table_models import make_table_model

import nextword
from nextword.core.errors import DataError
from nextword.evaluation.lm.probes import (
    PROBES,
    MinimalPair,
    minimal_pairs,
    probe,
    questions,
    questions_text,
    read_pairs,
)


@pytest.mark.parametrize("kind", PROBES)
def test_questions_are_the_same_for_a_seed_and_others_for_another(kind):
    assert questions(kind, 20, 3) == questions(kind, 20, 3)
    assert questions(kind, 20, 3) != questions(kind, 20, 4)
    assert len(questions_text(kind, 20).split("\n")) == 21


def test_copy_asks_for_the_letter_that_stands_there():
    for each in questions("copy", 50):
        first, second = (part.split() for part in each.text.split("="))
        assert each.options[each.right] == first[len(second)]
        assert second == first[: len(second)]


def test_recall_asks_for_the_value_of_a_key():
    for each in questions("recall", 50):
        pairs, key = each.text.split(";")
        words = pairs.split()
        values = dict(zip(words[::2], words[1::2], strict=True))
        assert each.options[each.right] == values[key.strip()]


def test_dyck_asks_for_the_bracket_that_closes():
    pairs = {")": "(", "]": "["}
    for each in questions("dyck", 50):
        opened = []
        for bracket in each.text.split():
            if bracket in pairs:
                assert opened.pop() == pairs[bracket]
            else:
                opened.append(bracket)
        assert pairs[each.options[each.right]] == opened[-1]


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A model of counts that has seen the questions themselves, and one that has not."""
    folder = tmp_path_factory.mktemp("probes")
    (folder / "known.txt").write_text(questions_text("dyck", 40, seed=0))
    (folder / "other.txt").write_text("( ) [ ] a 1 b 2\n" * 20)
    sets = {"model.order": 15}
    return [nextword.train(folder / f"{name}.txt", model="ngram", set=sets) for name in ("known", "other")]


def test_model_that_has_seen_the_answers_knows_them(counted):
    known, other = counted
    found = probe(known.model, known.tokenizer, "dyck", count=40, seed=0)
    assert found.share == 1.0
    assert (found.chance, found.count) == (0.5, 40)
    assert probe(other.model, other.tokenizer, "dyck", count=40, seed=0).share < 1.0


def test_model_of_chance_answers_by_chance(counted):
    tokenizer = counted[0].tokenizer
    model = make_table_model(tokenizer.vocab_size)
    assert 0.2 < probe(model, tokenizer, "dyck", count=60).share < 0.8


def test_good_sentence_of_a_pair_is_the_more_probable_one(tmp_path):
    (tmp_path / "t.txt").write_text("the cat sleeps\nthe cats sleep\n" * 10)
    run = nextword.train(tmp_path / "t.txt", model="ngram", set={"model.order": 3})
    pairs = [
        MinimalPair("the cat sleeps", "the cat sleep", "one"),
        MinimalPair("the cats sleep", "the cats sleeps", "many"),
        MinimalPair("the cats sleeps", "the cats sleep", "wrong"),
    ]
    found = minimal_pairs(run.model, run.tokenizer, pairs)
    assert {name: each.share for name, each in found.items()} == {
        "all": pytest.approx(2 / 3), "one": 1.0, "many": 1.0, "wrong": 0.0,
    }  # fmt: skip


def test_pairs_are_read_from_a_table_and_a_wrong_file_is_named(tmp_path):
    path = tmp_path / "blimp.tsv.gz"
    rows = ["uid\tfield\tterm\tpair\tgood\tbad", "x\tsyntax\ty\t0\tHe goes.\tHe go.", "x\tsyntax\ty\t1\ta\tb"]
    with gzip.open(path, "wt") as file:
        file.write("\n".join(rows) + "\n")
    assert read_pairs(path, each=1) == [MinimalPair("He goes.", "He go.", "syntax")]
    (tmp_path / "other.gz").write_text("no gzip")
    with pytest.raises(DataError, match=r"other.gz"):
        read_pairs(tmp_path / "other.gz")
