"""Pairs of texts: every format, and one sentence for everything that is wrong with them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from nextword.core.contracts import END, START
from nextword.core.errors import DataError
from nextword.data.batches.batch import NOT_COUNTED
from nextword.data.batches.pairs import PairBatches, PairSequences, Sequences
from nextword.data.languages import Language, swapped
from nextword.data.pairs import PairDataSettings, PairedText


def read(*names: str, **settings: str) -> list[tuple[str, str]]:
    return [each[:2] for each in PairedText(names, PairDataSettings(**settings)).read()]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_two_aligned_files_a_table_and_records_are_the_same_pairs():
    Path("a.de").write_text("eins\nzwei zwei\n")
    Path("a.en").write_text("one\ntwo two\n")
    Path("a.tsv").write_text("eins\tone\nzwei zwei\ttwo two\n")
    Path("a.csv").write_text("nr,target,source\n1,one,eins\n2,two two,zwei zwei\n")
    rows = [{"source": "eins", "target": "one"}, {"source": "zwei zwei", "target": "two two"}]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with gzip.open("b.tsv.gz", "wt") as file:
        file.write(Path("a.tsv").read_text())
    expected = [("eins", "one"), ("zwei zwei", "two two")]
    for names in (("a.de", "a.en"), ("a.tsv",), ("a.csv",), ("a.jsonl",), ("b.tsv.gz",)):
        assert read(*names) == expected
    assert read("a.csv", source="target", target="source") == [pair[::-1] for pair in expected]


def test_files_of_different_lengths_name_both_counts_and_where_to_look():
    words = [" ".join(["wort"] * (1 + at * 7 % 13)) for at in range(100)]
    Path("a.de").write_text("\n".join(words) + "\n")
    Path("a.en").write_text("\n".join(words[:40] + words[41:]) + "\n")
    with pytest.raises(DataError, match=r"100 lines and a\.en has 99.*look at line 41$"):
        read("a.de", "a.en")


def test_lines_that_only_one_file_has_at_its_end_are_where_to_look():
    words = [" ".join(["wort"] * (1 + at * 7 % 13)) for at in range(50)]
    Path("a.de").write_text("\n".join(words) + "\n\n")
    Path("a.en").write_text("\n".join(words) + "\n")
    with pytest.raises(DataError, match=r"51 lines and a\.en has 50.*line 51"):
        read("a.de", "a.en")


def test_an_empty_side_is_left_out_and_counted():
    Path("a.tsv").write_text("eins\tone\n\ttwo\ndrei\t\nvier\tfour\n")
    text = PairedText(["a.tsv"], PairDataSettings())
    assert [each.line for each in text.read()] == [1, 4]
    assert text.remarks == ["2 pairs with an empty side were left out"]


def test_few_rows_of_another_width_are_left_out_and_many_are_refused():
    Path("a.tsv").write_text("a\tb\n" * 200 + "a\tb\tc\n")
    text = PairedText(["a.tsv"], PairDataSettings())
    assert len(text.read()) == 200
    assert "a.tsv:201" in text.remarks[0]
    Path("b.tsv").write_text("a\tb\n" * 5 + "a b\n" * 5)
    with pytest.raises(DataError, match=r"b\.tsv:6: 5 of 10 rows have another number of columns"):
        read("b.tsv")


def test_a_table_of_one_column_says_how_pairs_are_given():
    Path("a.txt").write_text("eins\nzwei\n")
    with pytest.raises(DataError, match="a source and a target, separated by a tab"):
        read("a.txt")


def test_three_aligned_files_are_refused():
    for name in ("a.de", "a.en", "a.fr"):
        Path(name).write_text("x\n")
    with pytest.raises(DataError, match="come in twos"):
        read("a.de", "a.en", "a.fr")


def test_swapped_languages_are_noticed_and_others_are_not():
    german, english = ["der Hund und die Katze sind da"] * 9, ["the dog and the cat are there"] * 9
    sides = Language.of(german), Language.of(english)
    assert swapped(*sides, english, german)
    assert not swapped(*sides, german, english)
    assert not swapped(*sides, ["un chien"] * 20, ["ein anderes"] * 20)


def test_another_script_is_foreign():
    assert Language.of(["der Hund"]).is_foreign("राम ने रावण को मारा")
    assert not Language.of(["der Hund"]).is_foreign("le chien 123 !")


def sequences(lengths: list[int]) -> Sequences:
    ids = [index for length in lengths for index in (START, *range(3, 2 + length), END)]
    return Sequences(np.array(ids, np.int32))


def test_a_batch_has_sources_and_targets_behind_start():
    batch = PairSequences(sequences([3, 1]), sequences([2, 4])).take(np.array([1, 0]))
    assert batch.source_BS.tolist() == [[END, END, END], [3, 4, END]]
    assert batch.source_lengths_B.tolist() == [1, 3]
    assert batch.inputs_BT[0].tolist() == [START, 3, 4, 5]
    assert batch.targets_BT.tolist() == [[3, 4, 5, END], [3, END, NOT_COUNTED, NOT_COUNTED]]
    assert batch.tokens == 6
    assert batch.blank().tokens == 0


def test_every_pair_is_in_one_batch_and_nearly_all_positions_are_tokens():
    draw = np.random.default_rng(0)
    source = draw.integers(5, 25, 20000)
    target = np.maximum(2, source + draw.integers(-4, 5, 20000))
    batches = PairBatches(PairSequences(sequences(source.tolist()), sequences(target.tolist())), 2000, 1)
    assert batches.real_share > 0.97
    for epoch in (0, 1):
        rows = list(batches.rows(epoch))
        assert sorted(np.concatenate(rows).tolist()) == list(range(20000))
        assert all(len(each) * (source[each].max() + target[each].max()) <= 2000 for each in rows)
        again = list(batches.rows(epoch, start=3))
        assert all((one == two).all() for one, two in zip(rows[3:], again, strict=True))
    assert [len(each) for each in batches.rows(0)] != [len(each) for each in batches.rows(1)]
