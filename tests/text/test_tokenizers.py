"""Tokenizers fitted by name or read from a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenized_texts import BLOCKS

from nextword.core.errors import ConfigError, FormatError
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import (
    check_tokenizer,
    default_unit,
    fit_tokenizer,
    tokenizer_from_file,
    vocabulary_note,
)
from nextword.text.words import WordTokenizer


def test_a_word_list_is_a_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"<unk>\n<s>\n</s>\nthe\r\n#tag\r\n\\<s>\n")
    tokenizer = fit_tokenizer(str(path), [], TextSettings())
    assert isinstance(tokenizer, WordTokenizer)
    assert tokenizer.vocab.words == ["the", "#tag", "<s>"]
    assert tokenizer.encode("#tag <s> x").tolist() == [4, 5, 0]


@pytest.mark.parametrize("name", ["words", "characters", "bytes", "bpe", "unigram"])
def test_every_tokenizer_is_fitted_by_its_name(name: str, tmp_path: Path) -> None:
    tokenizer = fit_tokenizer(name, BLOCKS, TextSettings())
    assert (tokenizer.name, tokenizer.unit) == (name, default_unit(name))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        again = fit_tokenizer(str(path), [], TextSettings())
        assert again.encode("the cat").tolist() == tokenizer.encode("the cat").tolist()
    assert fit_tokenizer(name, BLOCKS, TextSettings(), "line").unit == "line"


def test_an_unknown_tokenizer_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'words'"):
        check_tokenizer("wrods")


def test_a_tokenizer_file_that_cannot_be_read_is_our_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"none\.json: the tokenizer cannot be read"):
        tokenizer_from_file(tmp_path / "none.json", TextSettings())


def test_a_vocabulary_of_codes_gets_a_note() -> None:
    assert vocabulary_note(10, 100) is None
    assert "text.max_vocab" in str(vocabulary_note(2_000_000, 10_000_000))
    assert vocabulary_note(80_000, 110_000) is not None
