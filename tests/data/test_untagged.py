"""Sentences to be tagged: raw text, words, and CoNLL files that keep their other columns."""

from pathlib import Path

import pytest

from nextword.core.errors import DataError
from nextword.data import untagged
from nextword.data.conll import TagDataSettings

AUTO = TagDataSettings()


def read(tmp_path, name, text, settings=AUTO, pretokenized=False):
    path = tmp_path / name
    path.write_text(text)
    return list(untagged.read_file(str(path), settings, pretokenized))


def test_raw_text_is_split_and_words_know_their_place(tmp_path):
    (found,) = read(tmp_path, "a.txt", "She can't sell 北京.\n")
    assert found.words == ("She", "ca", "n't", "sell", "北", "京", ".")
    assert [found.text[place.start : place.end] for place in found.places] == list(found.words)
    assert found.is_raw


def test_pretokenized_words_are_what_white_space_separates(tmp_path):
    (found,) = read(tmp_path, "a.txt", "She  can't\u3000sell .\n", pretokenized=True)
    assert found.words == ("She", "can't", "sell", ".")
    assert found.text == "She can't sell ."
    assert [found.text[place.start : place.end] for place in found.places] == list(found.words)


def test_conllu_keeps_comments_ranges_empty_nodes_and_columns(tmp_path):
    block = (
        "# text = du bist\n1-2\tdubist" + "\t_" * 8 + "\n1\tdu\tdu\t_\tX\ta=b\t2\tnsubj\t_\t_\n"
        "1.1\tweg" + "\t_" * 8 + "\n2\tbist\tsein\tOLD\tX\t_\t0\troot\t_\t_\n"
    )
    first, second = read(tmp_path, "a.conllu", f"{block}\n{block}")
    assert first.words == second.words == ("du", "bist")
    assert first.rows.fill(["PRON", "AUX"]) == block.replace("du\tdu\t_\tX", "du\tdu\tPRON\tX").replace(
        "OLD", "AUX"
    )
    (other,) = read(tmp_path, "a.conllu", block, TagDataSettings(column="xpos"))
    assert "du\tdu\t_\tPRON\ta=b" in other.rows.fill(["PRON", "AUX"])


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("Ann\nsees\n", "Ann\tA\nsees\tB\n"),
        ("Ann\tx\tO\nsees\ty\tO\n", "Ann\tx\tA\nsees\ty\tB\n"),
        ("Ann x O\nsees y O\n", "Ann x A\nsees y B\n"),
        ("-DOCSTART- O\nAnn O\nsees O\n", "-DOCSTART- O\nAnn A\nsees B\n"),
    ],
)
def test_columns_get_the_tag_in_their_last_one(text, filled, tmp_path):
    (found,) = read(tmp_path, "a.conll", text)
    assert found.words == ("Ann", "sees")
    assert found.rows.fill(["A", "B"]) == filled


def test_a_column_of_json_lines_means_nothing_here(tmp_path):
    (found,) = read(tmp_path, "a.conll", "Ann\tO\n", TagDataSettings(column="ner_tags"))
    assert found.rows.fill(["A"]) == "Ann\tA\n"


def test_unequal_columns_are_an_error(tmp_path):
    with pytest.raises(DataError, match=r"a.conll:2: expected 2 columns as in line 1, found 3"):
        read(tmp_path, "a.conll", "Ann\tO\nsees\tO\tO\n")


def test_a_long_file_is_read_piece_by_piece(tmp_path, monkeypatch):
    from nextword.data import plain

    monkeypatch.setattr(plain, "BLOCK", 64)
    path = Path(tmp_path / "a.conll")
    path.write_text("Ann\tO\n\n" * 1000 + "Bob\tO\tO\n")
    found = untagged.read_file(str(path), AUTO, False)
    assert next(found).words == ("Ann",)  # the mistake at the end has not been read yet
    with pytest.raises(DataError, match=r"a.conll:2001: expected 2 columns"):
        list(found)
