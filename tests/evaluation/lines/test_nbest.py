"""N-best lists: read in three formats, and wrong lines are named."""

from __future__ import annotations

import json

import pytest
from nbest_lists import KALDI, lines

from nextword.core.errors import DataError
from nextword.evaluation.lines.nbest import read_nbest, read_references


def test_the_three_formats_read_the_same():
    tsv = KALDI.replace(b" ", b"\t", 0)
    tsv = b"\n".join(b"\t".join(line.split(b" ", 2)) for line in lines(KALDI) if line)
    rows = [line.split(b" ", 2) for line in lines(KALDI) if line]
    objects = [{"id": r[0].decode(), "score": float(r[1]), "text": r[2].decode(), "more": 1} for r in rows]
    jsonl = "\n".join(map(json.dumps, objects)).encode()
    found = [read_nbest(lines(data)) for data in (KALDI, tsv, jsonl)]
    assert [nbest.format for nbest in found] == ["kaldi", "tsv", "jsonl"]
    for nbest in found:
        assert nbest.groups == ["utt-a", "utt-b"]
        assert nbest.starts.tolist() == [0, 2]
        assert nbest.scores.tolist() == [[-10.5], [-10.0], [-3.0], [-4.5]]
        assert nbest.texts[3] == "on the mat"


def test_ids_that_repeat_are_the_utterances_and_need_not_stand_together():
    nbest = read_nbest(lines(b"x\t1\t2\ta b\ny\t1\t2\tc\nx\t3\t4\ta\n"))
    assert nbest.groups == ["x", "y"]
    assert nbest.texts == ["a b", "a", "c"]
    assert nbest.scores.tolist() == [[1, 2], [3, 4], [1, 2]]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"utt-1 -1 a\nutt-2\n", "list.txt:2: this line has no score"),
        (b"utt-1 x a\n", "list.txt:1: the score is 'x'"),
        (b"utt-1 nan a\n", "list.txt:1: the score is 'nan'"),
        (b"a\t1\tb\na\t2\n", "list.txt:2: this line has 2 fields"),
        (b"a\t1\tb\na\t2\t3\tc\n", "list.txt:2: 2 scores here, 1 in line 1"),
        (b'{"id": 1, "score": 2, "text": "a"}\n{"id": 1}\n', "list.txt:2: 'score' is missing"),
        (b'{"id": 1, "score": "high", "text": "a"}\n', "list.txt:1: 'score' is 'high'"),
        (b'{"id": 1, "score": 2, "text": "a\\nb"}\n', "list.txt:1: 'text' must be one line"),
        (b'{"id": 1\n', "list.txt:1: this line is not JSON"),
        (b'{"id": 1, "score": 2, "text": "\\ud800"}\n', "list.txt:1: 'text' must be one line"),
        (b"\n\nutt-1 1 caf\xe9\n", "list.txt:3: the byte 0xE9"),
        (b"\n\n", "list.txt: the n-best list is empty"),
    ],
)
def test_a_wrong_line_is_named(data, said):
    with pytest.raises(DataError) as error:
        read_nbest(lines(data), "list.txt")
    assert str(error.value).startswith(said)


def test_references_are_read_in_all_forms_and_ids_come_once():
    assert read_references(lines(b"a the cat\nb\n")) == {"a": "the cat", "b": ""}
    assert read_references(lines(b"a\tthe cat\n")) == {"a": "the cat"}
    assert read_references(lines(b'{"id": "a", "text": "the cat"}\n')) == {"a": "the cat"}
    with pytest.raises(DataError, match=r"r\.txt:2: the id 'a'"):
        read_references(lines(b"a x\na y\n"), "r.txt")
    with pytest.raises(DataError, match="no references"):
        read_references([])
