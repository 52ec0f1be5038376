"""Tokenizer files that are wrong, missing, huge or random are our error."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenized_texts import BLOCKS

from nextword.core.errors import FormatError
from nextword.text import tokenizers
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import (
    fit_tokenizer,
    load_tokenizer,
)


def saved(folder: Path) -> dict[str, Any]:
    fit_tokenizer("words", BLOCKS, TextSettings()).save(str(folder / "tokenizer.json"))
    values: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text())
    return values


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 99},
        {"version": "1"},
        {"name": "wrods"},
        {"unit": "page"},
        {"words": "a\nb"},
        {"words": "a\na\n"},
        {"words": "a b\n"},
        {"words": "\n"},
        {"words": "a\0\n"},
        {"words": "\ud800\n"},
        {"words": 3},
        {"lowercase": 1},
        {"literal": -1},
        {"literal": True},
        {"gaps": None},
        {"gaps": {"leading": {}}},
    ],
)
def test_a_wrong_field_is_our_error(change: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(saved(tmp_path) | change))
    with pytest.raises(FormatError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("listed", [["x", 1]]),
        ("listed", []),
        ("listed", [["", -1]]),
        ("listed", [["", 1.5]]),
        ("escaped", None),
        ("listed", [[" " * n, 1] for n in range(70)]),
    ],
)
def test_wrong_gaps_are_our_error(kind: str, value: Any, tmp_path: Path) -> None:
    values = saved(tmp_path)
    values["gaps"]["leading"][kind] = value
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(FormatError, match="the tokenizer's gaps"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 200_000, b"null"])
def test_what_is_no_tokenizer_file_is_our_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(FormatError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)


def test_a_missing_or_huge_tokenizer_is_our_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        load_tokenizer(tmp_path / "none.json")
    saved(tmp_path)
    monkeypatch.setattr(tokenizers, "_LIMIT", 10)
    with pytest.raises(FormatError, match="too large"):
        load_tokenizer(tmp_path)


@settings(max_examples=60)
@given(st.data())
def test_a_fuzzed_tokenizer_file_raises_our_error_only(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    saved(folder)
    path = folder / "tokenizer.json"
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(
        content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
    )
    with contextlib.suppress(FormatError):
        load_tokenizer(path).encode("the cat")
