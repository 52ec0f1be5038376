"""`nextword score`: rows per line and per token."""

import json

import pytest


def test_score_gives_one_row_a_line(nextword, saved_run, here):
    (here / "t.txt").write_text("the cat sat\nthe zebra sat\n")
    rows = [line.split("\t") for line in nextword("score", saved_run, "t.txt").out.rstrip("\n").split("\n")]
    assert [row[1:] for row in rows] == [["4", "0", "the cat sat"], ["4", "1", "the zebra sat"]]
    assert float(rows[0][0]) > float(rows[1][0])


def test_score_by_token_adds_up_to_the_line(nextword, saved_run, here):
    (here / "t.txt").write_text("the cat sat\n")
    line = nextword("score", saved_run, "t.txt", "--log10").out.split("\t")[0]
    tokens = nextword("score", saved_run, "t.txt", "--log10", "--by", "token").out.rstrip("\n").split("\n")
    assert [row.split("\t")[4] for row in tokens] == ["the", "cat", "sat", "</s>"]
    assert sum(float(row.split("\t")[2]) for row in tokens) == pytest.approx(float(line), abs=1e-5)


def test_score_formats_agree(nextword, saved_run, here):
    (here / "t.txt").write_text("the cat sat\nthe cow sang\n")
    tsv = nextword("score", saved_run, "t.txt").out
    jsonl = nextword("score", saved_run, "t.txt", "--format", "jsonl").out
    whole = nextword("score", saved_run, "t.txt", "--json").json
    assert [f"{row['logprob']:.6f}" for row in whole["lines"]] == [
        row.split("\t")[0] for row in tsv.rstrip().split("\n")
    ]
    assert len(jsonl.rstrip().split("\n")) == 2
    assert whole["logprob"] == pytest.approx(sum(row["logprob"] for row in whole["lines"]))


def test_score_without_the_ends_leaves_them_out(nextword, saved_run, here):
    (here / "t.txt").write_text("the cat\n")
    both = nextword("score", saved_run, "t.txt", "--json").json["tokens"]
    assert nextword("score", saved_run, "t.txt", "--no-eos", "--json").json["tokens"] == both - 1
    plain = nextword("score", saved_run, "t.txt", "--json").json["logprob"]
    assert nextword("score", saved_run, "t.txt", "--no-bos", "--json").json["logprob"] != plain


def test_evidence_is_a_row_a_token_and_adds_up(nextword, corpus, saved_run, here):
    sets = ("--set", "recent.decay=0.9", "--set", "recent.size=20")
    assert nextword("mix", saved_run, "--recent", 20, *sets, "--tune", corpus, "--out", "m").code == 0
    (here / "t.txt").write_text("the cat sat\nthe cat sang\n")
    rows = [line.split("\t") for line in nextword("score", "m", "t.txt", "--evidence").out.splitlines()]
    assert [row[3] for row in rows] == ["the", "cat", "sat", "</s>", "the", "cat", "sang", "</s>"]
    assert [row[:2] for row in rows[3:6]] == [["1", "4"], ["2", "1"], ["2", "2"]]
    assert "'the' 4 tokens ago" in rows[5][4]
    plain = nextword("score", "m", "t.txt", "--evidence", "--format", "jsonl").out.splitlines()
    found = [json.loads(line) for line in plain]
    assert all(abs(sum(s["share"] for s in each["said"]) - each["probability"]) < 1e-9 for each in found)


@pytest.mark.parametrize(
    ("options", "heading"),
    [
        (("--by", "token"), "line\tposition\tlog p (nats)\tunknown\ttoken"),
        (("--by", "token", "--log10"), "line\tposition\tlog10 p\tunknown\ttoken"),
        (("--evidence",), "line\tposition\tlog p (nats)\ttoken\tevidence"),
        ((), "log p (nats)\ttokens\tunknown\ttext"),
    ],
)
def test_columns_have_a_heading_on_a_terminal_only(
    nextword, saved_run, corpus, monkeypatch, options, heading
):
    rows = nextword("score", saved_run, corpus, *options).out.splitlines()
    monkeypatch.setattr("nextword.cli.score._is_terminal", lambda: True)
    shown = nextword("score", saved_run, corpus, *options).out.splitlines()
    assert shown[0].split("\t") == heading.split("\t")
    assert len(shown[1:]) == len(rows)
    assert len(rows[0].split("\t")) == len(heading.split("\t"))


def test_json_rows_have_no_heading(nextword, saved_run, corpus, monkeypatch):
    monkeypatch.setattr("nextword.cli.score._is_terminal", lambda: True)
    assert nextword("score", saved_run, corpus, "--format", "jsonl").out.startswith("{")


def test_score_of_a_table_is_a_column_of_it(nextword, saved_run, here):
    (here / "t.tsv").write_text("id\ttext\n1\tthe cat sat\n2\t\n")
    done = nextword("score", saved_run, "t.tsv", "-o", "out.tsv", "--prefix", "lm_")
    assert done.code == 0, done.err
    header, first, second = (here / "out.tsv").read_text().splitlines()
    assert header == "id\ttext\tlm_logprob\tlm_tokens\tlm_perplexity"
    alone = nextword("score", saved_run, "t.tsv", "--format", "tsv").out.split("\n")[0].split("\t")
    assert first.split("\t")[:4] == ["1", "the cat sat", alone[0], alone[1]]
    assert second == "2\t\t\t0\t"


def test_unknown_words_are_named_in_a_note(nextword, saved_run, tmp_path):
    (tmp_path / "lines.txt").write_text("the cat sat\nthe zebra sat\na yak sat\n")
    done = nextword("score", saved_run, tmp_path / "lines.txt")
    assert "in 2 lines: 'zebra', 'a', 'yak'" in done.err
    assert done.out.count("\n") == 3
