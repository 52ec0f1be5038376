"""`nextword tokenizer`: train, show, compare."""

import pytest


def test_tokenizer_can_be_trained_shown_and_used(nextword, corpus, here):
    assert (
        nextword("tokenizer", "train", corpus, "--tokenizer", "characters", "--out", "c.json").out
        == "c.json\n"
    )
    shown = nextword("tokenizer", "show", "c.json", "--text", "cat", "--json").json
    assert shown["pieces"] == ["c", "a", "t"]
    assert nextword("train", corpus, "--model", "ngram", "--tokenizer", "c.json", "--out", "r").code == 0
    assert 'tokenizer = "characters"' in (here / "r" / "config.toml").read_text()
    assert nextword("tokenizer", "show", "bytes").code == 0
    assert nextword("tokenizer", "show", "words").code == 1


def test_tokenizers_can_be_compared(nextword, corpus, here):
    rows = nextword("tokenizer", "compare", corpus, "--tokenizers", "words,bytes", "--json").json
    assert [row["name"] for row in rows] == ["words", "bytes"]
    assert rows[1]["bytes_per_token"] == pytest.approx(1, abs=0.01)
