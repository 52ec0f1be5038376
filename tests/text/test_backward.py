"""Backward text: every sequence is reversed between START and END, whatever the pieces it comes in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nextword
from nextword.core.contracts import END, START, Block, Encoded
from nextword.core.errors import ConfigError
from nextword.text.backward import BackwardTokenizer, reverse
from nextword.text.words import WordTokenizer

TEXT = "the students opened their books\nthe teacher closed the door\n\nmy sister read a letter\n" * 25


@given(st.lists(st.lists(st.integers(3, 9), max_size=6), min_size=1, max_size=8), st.integers(1, 7))
def test_every_sequence_is_reversed_however_the_stream_is_cut(sequences, size):
    ids = np.concatenate([[START, *words, END] for words in sequences]).astype(np.int32)
    pieces = [Encoded(ids[at : at + size], 0, 0, 0, 0) for at in range(0, len(ids), size)]
    found = np.concatenate([piece.ids for piece in reverse(pieces)])
    assert found.tolist() == [token for words in sequences for token in [START, *words[::-1], END]]


def test_encode_and_decode_are_inverse():
    tokenizer = BackwardTokenizer(WordTokenizer.from_words(["a", "b", "c"]))
    assert tokenizer.encode("a b c").tolist() == tokenizer.forward.encode("c b a").tolist()
    assert tokenizer.decode(tokenizer.encode("a b c")) == "a b c"
    decoder = tokenizer.decoder()
    assert "".join(decoder.push(int(i)) for i in tokenizer.encode("a b c")) + decoder.flush() == "a b c"


def backwards(text):
    return "".join(" ".join(line.split()[::-1]) + "\n" for line in text.splitlines())


@pytest.mark.parametrize("model", ["ngram", "lstm", "transformer", "window"])
def test_a_backward_model_is_a_forward_model_of_the_reversed_text(model, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "reversed.txt").write_text(backwards(TEXT))
    learned = {"train.steps": 5, "train.precision": "fp32", "model.carry": False}
    sets = {"data.hold_out": 0} | ({} if model == "ngram" else learned)
    run = nextword.train(
        tmp_path / "text.txt",
        model=model,
        tokenizer="words",
        set=sets | {"data.direction": "backward"},
        out=tmp_path / "run",
    )
    tokens = tmp_path / "run" / "tokenizer.json"  # ids go by the first occurrence of a word
    other = nextword.train(tmp_path / "reversed.txt", model=model, tokenizer=str(tokens), set=sets)
    report = run.evaluate(tmp_path / "text.txt")
    assert report.nll == pytest.approx(other.evaluate(tmp_path / "reversed.txt").nll, rel=1e-6)
    assert "|dir:backward|" in report.signature
    assert run.score("the students read").nll == pytest.approx(other.score("read students the").nll, rel=1e-6)
    assert run.score("the students").tokens[0].text == "students"


def test_a_saved_backward_run_opens_as_one(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    run = nextword.train(
        tmp_path / "text.txt", model="ngram", set={"data.direction": "backward"}, out=tmp_path / "run"
    )
    again = nextword.load(tmp_path / "run")
    assert isinstance(again.tokenizer, BackwardTokenizer)
    assert again.score("the students").nll == run.score("the students").nll


def test_blocks_of_a_document_are_reversed_as_one():
    from nextword.text.bytes import ByteTokenizer

    tokenizer = BackwardTokenizer(ByteTokenizer())
    blocks = [Block(b"ab", False, "t"), Block(b"cd", True, "t")]
    whole = np.concatenate([piece.ids for piece in tokenizer.encode_blocks(blocks)])
    assert tokenizer.forward.decode(whole.tolist()) == "dcba"


def test_verbs_that_need_left_to_right_refuse_a_backward_model(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    run = nextword.train(tmp_path / "text.txt", model="ngram", set={"data.direction": "backward"})
    for verb in (lambda: run.generate("the"), lambda: run.compress(b"the")):
        with pytest.raises(ConfigError, match="reads text from its end"):
            verb()
    assert run.next("books", top=1)[0][0] == "their"  # what stands before
