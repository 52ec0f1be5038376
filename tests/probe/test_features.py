"""Features of a text: quotes, lines, sentences, in any script."""

from __future__ import annotations

from nextword.probe import features


def test_features_follow_quotes_lines_and_sentences():
    pieces = ["", "He", ' said "', "go", '"', ".", "\n", "Now"]
    found = features.numbers(pieces)
    assert found["inside quotes"].tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    assert found["position in the line"].tolist() == [0, 2, 9, 11, 12, 13, 0, 3]
    assert found["words of the sentence"].tolist() == [0, 1, 3, 3, 3, 0, 0, 1]
    assert [features.KINDS[i] for i in features.kinds(pieces)] == [
        "none", "small letter", "mark", "small letter", "mark", "mark", "space", "small letter",
    ]  # fmt: skip


def test_features_of_other_scripts():
    found = features.numbers(["「", "राम", "」", "。", "你好", "\n"])
    assert found["inside quotes"].tolist() == [1, 1, 0, 0, 0, 0]
    assert features.KINDS[features.kinds(["你"])[0]] == "letter"
