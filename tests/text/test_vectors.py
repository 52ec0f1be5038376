"""Files of pretrained word vectors, in every form in which they are passed on."""

import gzip

import numpy as np
import pytest

from nextword.core.errors import FormatError
from nextword.text.vectors import find_vectors, read_vectors, told

VECTORS = {
    "the": [0.5, -1.0, 2.0],
    "Rome": [1.0, 0.0, 0.25],
    "naïve": [3.0, 4.0, 5.0],
    "rome": [9.0, 9.0, 9.0],
}


def _text(header):
    lines = [f"{len(VECTORS)} 3"] if header else []
    return (
        "\n".join([*lines, *(" ".join([word, *map(str, vector)]) for word, vector in VECTORS.items())]) + "\n"
    )


def _binary(newline=b"\n"):
    parts = [
        word.encode() + b" " + np.array(vector, "<f4").tobytes() + newline for word, vector in VECTORS.items()
    ]
    return f"{len(VECTORS)} 3\n".encode() + b"".join(parts)


FILES = {
    "word2vec.txt": _text(header=True).encode(),
    "fasttext.vec": _text(header=True).replace("\n", " \n", 2).encode(),  # a space ends each of its lines
    "glove.txt": _text(header=False).encode(),
    "tabs.txt": _text(header=False).replace(" ", "\t").encode(),
    "word2vec.bin": _binary(),
    "gensim.bin": _binary(newline=b""),
    "glove.txt.gz": gzip.compress(_text(header=False).encode()),
    "word2vec.bin.gz": gzip.compress(_binary()),
}


@pytest.mark.parametrize("name", FILES)
def test_every_form_gives_the_same_vectors(name, tmp_path):
    (tmp_path / name).write_bytes(FILES[name])
    found = dict(read_vectors(tmp_path / name))
    assert {word: vector.tolist() for word, vector in found.items()} == VECTORS


def test_a_word_is_found_as_written_and_else_in_another_case(tmp_path):
    (tmp_path / "v.txt").write_text("Rome 1 2\nTHE 3 4\nIn1990 5 6\nthe 7 8\nnew 9 9\n")
    found = find_vectors(tmp_path / "v.txt", ["the", "rome", "in0000", "Rome", "absent"], lower=False)
    assert dict(zip(found.rows_N.tolist(), found.vectors_NE.tolist(), strict=True)) == {
        0: [7.0, 8.0], 1: [1.0, 2.0], 2: [5.0, 6.0], 3: [1.0, 2.0],
    }  # fmt: skip
    assert found.exact == 2
    assert "4 of 5 words (80%), 2 of them in another case" in told(found, 5, "v.txt")


def test_frequent_words_of_the_file_are_added_up_to_a_number(tmp_path):
    (tmp_path / "v.txt").write_text("the 1\nParis 2\nparis 3\nrome 4\n")
    found = find_vectors(tmp_path / "v.txt", ["the"], more=1)
    assert (found.new, found.new_ME.tolist()) == (("paris",), [[2.0]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"the 1 2\nrome 1\n", "v.txt:2: expected a word and 2 numbers, found 1 numbers"),
        (b"2 2\nthe 1 2\nrome 1 x\n", "v.txt:3: expected a word and 2 numbers, found 'x' among them"),
        (b"the 1 nan\n", "v.txt:1: a number of this vector is NaN or infinite"),
        (b"", "v.txt: there are no word vectors in this file"),
        (b"5 3\n", "v.txt: there are no word vectors in this file"),
        (_binary()[:-9], "v.txt: vector 4 of 4 is cut off"),
        (bytes([0xBA, 0x16, 0x4F, 0x2F, 12, 0, 0, 0]), "v.txt: this is a fastText model"),
        (b"only prose is here\n", "v.txt:1: expected a word and 3 numbers, found 'prose"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(content, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.txt").write_bytes(content)
    with pytest.raises(FormatError) as error:
        list(read_vectors("v.txt"))
    assert message in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FormatError, match=r"none\.txt: the word vectors cannot be read"):
        list(read_vectors(tmp_path / "none.txt"))
