"""Texts to be classified come from lines or from a column of a table, with labels or without."""

import pytest

from nextword.data.labelled import LabelledDataSettings
from nextword.data.unlabelled import read_file

AUTO = LabelledDataSettings()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "a film\nthe plot\n"),
        ("a.tsv", "a film\nthe plot\n"),
        ("a.tsv", "a film\tgood\nthe plot\tgood\n"),
        ("a.tsv", "1\ta film\n1\tthe plot\n"),
        ("a.csv", "text\na film\nthe plot\n"),
        ("a.csv", "id,text\n1,a film\n2,the plot\n"),
        ("a.csv", "id;text;label\n1;a film;x\n2;the plot;y\n"),
        ("a.csv", 'label,text\nx,"a film"\ny,the plot\n'),
        ("a.jsonl", '{"text": "a film"}\n{"text": "the plot", "label": "x"}\n'),
    ],
)
def test_texts_are_found(name, content, tmp_path):
    (tmp_path / name).write_text(content)
    assert list(read_file(str(tmp_path / name), AUTO)) == ["a film", "the plot"]


@pytest.mark.parametrize(
    "content", ["body,when\na film,1\nthe plot,2\n", "body,mood\na film,x\nthe plot,y\n"]
)
def test_the_columns_of_the_training_may_be_missing(content, tmp_path):
    (tmp_path / "a.csv").write_text(content)
    settings = LabelledDataSettings(text="body", label="mood")
    assert list(read_file(str(tmp_path / "a.csv"), settings)) == ["a film", "the plot"]


def test_a_line_break_inside_a_text_stays_inside(tmp_path):
    (tmp_path / "a.csv").write_text('text,label\n"a\nfilm",x\nthe plot,y\n')
    assert list(read_file(str(tmp_path / "a.csv"), AUTO)) == ["a\nfilm", "the plot"]


def test_a_long_table_is_read_piece_by_piece(tmp_path, monkeypatch):
    from nextword.core.errors import DataError
    from nextword.data import plain

    monkeypatch.setattr(plain, "BLOCK", 64)
    (tmp_path / "a.tsv").write_text("a film\tx\n" * 6000 + "the plot\n")
    found = read_file(str(tmp_path / "a.tsv"), AUTO)
    assert next(found) == "a film"
    with pytest.raises(DataError, match=r"a.tsv:6001: expected 2 columns"):
        list(found)
