"""Tables through `score` and `filter`, as functions and commands use them."""

from __future__ import annotations

import io
import json

import pytest

import nextword
from nextword.api.score import ScoreOptions, format_for, write
from nextword.core.errors import ConfigError, DataError

ROWS = [
    {"id": 1, "body": "the students opened their books"},
    {"id": 2, "body": "zq zq"},
    {"id": 3, "body": ""},
]
BODY = {"data.text_column": "body"}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_scores_are_columns_of_the_same_rows(run, table, tmp_path):
    options = ScoreOptions(format="rows", sets=("data.text_column=body",), prefix="lm_")
    write(run, str(table), str(tmp_path / "out.jsonl"), options)
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [{"id": row["id"], "body": row["body"]} for row in found] == ROWS
    expected = run.score(ROWS[0]["body"])
    assert found[0]["lm_logprob"] == pytest.approx(expected.logprob)
    assert found[0]["lm_tokens"] == len(expected.tokens)
    assert found[0]["lm_perplexity"] == pytest.approx(expected.perplexity)
    assert (found[2]["lm_logprob"], found[2]["lm_tokens"]) == (None, 0)


def test_filter_takes_a_column_and_adds_buckets(run, table, tmp_path):
    done = nextword.filter(run, table, tmp_path / "out.jsonl", keep="buckets:50", add_score=True, set=BODY)
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert done.lines == 3
    assert [row["bucket"] for row in found] == ["head", "tail", None]
    assert found[0]["score"] < found[1]["score"]


def test_a_missing_column_is_named(run, table, tmp_path):
    with pytest.raises(DataError, match=r"t.jsonl:1: there is no field 'text'; .*available: id, body"):
        nextword.filter(run, table, tmp_path / "out.jsonl")


def test_rows_keep_their_format(run, table, tmp_path):
    with pytest.raises(ConfigError, match=r"written in its own format; choose a name that ends in .jsonl"):
        nextword.filter(run, table, tmp_path / "out.csv", set=BODY)
    with pytest.raises(ConfigError, match="which is also the input"):
        write(run, str(table), str(table), ScoreOptions(format="rows", sets=("data.text_column=body",)))
    (tmp_path / "t.txt").write_text("the students\n")
    with pytest.raises(DataError, match="--format rows copies one table"):
        write(run, str(tmp_path / "t.txt"), io.BytesIO(), ScoreOptions(format="rows"))


def test_the_file_to_write_decides_the_format():
    assert format_for("a.jsonl", "b.jsonl", None) == "rows"
    assert format_for("a.jsonl", None, None) == "tsv"
    assert format_for("a.txt", "b.txt", None) == "tsv"
    assert format_for("a.jsonl", "b.jsonl", "tsv") == "tsv"
    assert format_for("a.jsonl", "b.tsv", None) == "tsv"


def test_lines_of_a_text_get_bucket_and_score_in_front(run, tmp_path):
    (tmp_path / "t.txt").write_text("the students opened their books\n\nzq\tzq")
    nextword.filter(run, tmp_path / "t.txt", tmp_path / "out.tsv", keep="buckets:50", add_score=True)
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().split("\n")]
    assert [row[0] for row in rows] == ["head", "", "tail"]
    assert [row[2:] for row in rows] == [["the students opened their books"], [""], ["zq", "zq"]]
    assert float(rows[0][1]) < float(rows[2][1])
