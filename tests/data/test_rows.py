"""Rows of tables: copied byte for byte, with their texts, and new columns behind the old ones."""

from __future__ import annotations

import csv
import gzip
import io
import json
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.errors import ConfigError, DataError
from nextword.data.paths import Source, resolve
from nextword.data.rows import Row, Table, _delimiter, open_table
from nextword.data.settings import DataSettings

CELLS = st.text(st.sampled_from('ab ,"\n\r;é'), min_size=1, max_size=8).filter(
    lambda text: text.strip() and "\r" not in text
)


def table_of(path, **values) -> Table:
    found = Table.of(resolve(path)[0], DataSettings(**values))
    assert found is not None
    return found


def written(table: Table, values=None, keep=None) -> bytes:
    rows, target = list(table.rows()), io.BytesIO()
    kinds = {
        name: next(type(cell) for cell in cells if cell is not None) for name, cells in (values or {}).items()
    }
    writer = table.writer(target, kinds)
    writer.write(rows, keep or [True] * len(rows), values or {})
    writer.close()
    return target.getvalue()


@given(cells=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6), end=st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=60, deadline=None)
def test_rows_of_csv_are_the_file_and_new_cells_come_last(tmp_path_factory, cells, end):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=end).writerows([("id", "text"), *cells])
    table = table_of(path)
    assert written(table) == path.read_bytes()
    assert [row.text.decode() for row in table.rows()] == [text for _, text in cells]
    more = written(table, {"score": [float(n) for n in range(len(cells))]}).decode()
    rows = list(csv.reader(io.StringIO(more, newline="")))
    assert rows[0] == ["id", "text", "score"]
    assert rows[1:] == [[*row, f"{number:.6f}"] for number, row in enumerate(cells)]


def test_json_fields_keep_their_bytes(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"n": 1.50,  "text": "a b"}\n\n"c"\n{"text": "", "u": "\\u00e9"}')
    table = table_of(path)
    assert [row.text for row in table.rows()] == [b"a b", b"c", b""]
    found = written(table, {"bucket": ["head", "tail", None], "score": [0.5, float("inf"), float("nan")]})
    assert found.decode().split("\n") == [
        '{"n": 1.50,  "text": "a b", "bucket": "head", "score": 0.5}',
        '{"text": "c", "bucket": "tail", "score": null}',
        '{"text": "", "u": "\\u00e9", "bucket": null, "score": null}',
        "",
    ]
    assert written(table, keep=[False, True, False]) == b'"c"\n'


def test_a_table_without_a_header_gets_none(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text('1\ta "b\n2\tc\n')
    table = table_of(path, text_column="2")
    assert written(table, {"score": [1.0, 2.0]}) == b'1\ta "b\t1.000000\n2\tc\t2.000000\n'


def test_the_delimiter_is_the_one_under_which_the_text_is_a_cell():
    assert _delimiter(Row(b"a, b", b"1;a, b;2\n", 2), "csv") == ";"
    assert _delimiter(Row(b"a; b", b"1,a; b,2\n", 2), "csv") == ","
    assert _delimiter(Row(b"a\nb", b"a;b\n", 2), "csv") == ";"  # two columns joined
    assert _delimiter(Row(b"a", b"a\n", 2), "tsv") == "\t"


def test_a_compressed_table_is_copied_unpacked(tmp_path):
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "a"}\n{"text": "b"}\n'))
    assert written(table_of(path)) == b'{"text": "a"}\n{"text": "b"}\n'


def test_many_rows_over_several_pieces_keep_their_places(tmp_path, monkeypatch):
    path = tmp_path / "t.jsonl"
    lines = [json.dumps({"text": f"row {number} " + "x" * (number % 50)}) for number in range(3000)]
    path.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("nextword.data.paths.PIECE", 999)
    found = list(table_of(path).rows())
    assert [row.data.decode().rstrip("\n") for row in found] == lines
    assert [row.line for row in found] == list(range(1, 3001))


def test_parquet_keeps_its_columns_and_types(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    old = arrow.table({"n": [1, 2, 3], "text": ["a", None, "c"], "at": arrow.array([1, 2, 3], arrow.int8())})
    parquet.write_table(old, path, row_group_size=2)
    values = {"score": [0.5, None, 1.5], "bucket": ["head", None, "tail"]}
    found = parquet.read_table(io.BytesIO(written(table_of(path), values, [True, False, True])))
    assert found.schema.names == ["n", "text", "at", "score", "bucket"]
    assert found.schema.field("at").type == arrow.int8()
    assert found.to_pylist()[1] == {"n": 3, "text": "c", "at": 3, "score": 1.5, "bucket": "tail"}


def test_parquet_columns_have_one_type_even_where_a_group_has_no_value(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path, target = tmp_path / "t.parquet", io.BytesIO()
    parquet.write_table(arrow.table({"text": ["", "b"]}), path)
    table = table_of(path)
    rows, writer = list(table.rows()), table.writer(target, {"bucket": str, "lm_tokens": int})
    writer.write(rows[:1], [True], {"bucket": [None], "lm_tokens": [0]})
    writer.write(rows[1:], [True], {"bucket": ["head"], "lm_tokens": [2]})
    writer.close()
    assert parquet.read_table(io.BytesIO(target.getvalue())).to_pylist() == [
        {"text": "", "bucket": None, "lm_tokens": 0},
        {"text": "b", "bucket": "head", "lm_tokens": 2},
    ]


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv"])
def test_a_column_that_is_there_already_is_an_error(tmp_path, name):
    path = tmp_path / name
    path.write_text('{"text": "a", "score": 1}\n' if name.endswith("jsonl") else "text,score\na,1\n")
    with pytest.raises(
        DataError, match=r"there is a column 'score' already; choose other names with --prefix"
    ):
        written(table_of(path), {"score": [1.0]})


def test_plain_text_is_no_table_and_skipping_is_refused(tmp_path):
    (tmp_path / "t.txt").write_text("a\n")
    with ExitStack() as stack:
        assert open_table(Source(str(tmp_path / "t.txt"), size=2), DataSettings(), stack) is None
    (tmp_path / "t.csv").write_text("text\na\n")
    with pytest.raises(
        ConfigError, match=r"'data.on_error' is 'skip', but the rows of a table are copied whole"
    ):
        table_of(tmp_path / "t.csv", on_error="skip")


def test_what_can_be_read_once_is_kept_and_named_as_the_user_did(tmp_path, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b'{"text": "a"}\n{"text": "b"}\n{"other": "c"}\n')

    monkeypatch.setattr("sys.stdin", Stdin)
    with ExitStack() as stack:
        table = open_table(Source("-"), DataSettings(format="jsonl"), stack)
        assert table is not None
        assert next(table.rows()).text == b"a"
        with pytest.raises(DataError, match=r"standard input:3: there is no field 'text'"):
            list(table.rows())
