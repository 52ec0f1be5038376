"""Ids on disk: found again by content, bounded, and never half written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nextword.core.contracts import Block, Encoded
from nextword.core.errors import ConfigError
from nextword.data import packed as module
from nextword.data.encode import packed_key
from nextword.data.packed import cache_limit, packed
from nextword.system.machine import cache_folder
from nextword.text.bytes import ByteTokenizer
from nextword.text.settings import TextSettings
from nextword.text.words import WordTokenizer


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXTWORD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ids"


class Encoding:
    """Encodes two blocks, and counts how often it was asked to."""

    calls = 0

    def __call__(self) -> Iterator[Encoded]:
        self.calls += 1
        return ByteTokenizer().encode_blocks([Block(b"ab c", False), Block(b"d", True)])


def test_ids_are_made_once_and_mapped_afterwards(cache: Path) -> None:
    encode = Encoding()
    first, second = packed("k", encode), packed("k", encode)
    assert encode.calls == 1
    assert first.ids.tolist() == second.ids.tolist() == [1, 100, 101, 35, 102, 103, 2]
    assert isinstance(second.ids, np.memmap)
    assert (second.sequences, second.words, second.bytes, second.unknown, second.tokens) == (1, 2, 5, 0, 6)
    assert second.path == cache / "k.ids"
    assert os.listdir(cache) == ["k.ids"]


def test_an_empty_text_can_be_cached(cache: Path) -> None:
    assert len(packed("e", lambda: iter(())).ids) == 0
    assert len(packed("e", lambda: iter(())).ids) == 0


@pytest.mark.parametrize("damage", ["flip", "cut", "head", "empty"])
def test_a_damaged_file_is_made_again(damage: str, cache: Path) -> None:
    encode = Encoding()
    path = packed("k", encode).path
    assert path is not None
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-1] ^= 1
    elif damage == "head":
        data[0] ^= 1
    path.unlink()
    path.write_bytes(data[:-4] if damage == "cut" else b"" if damage == "empty" else data)
    assert packed("k", encode).ids.tolist()[-1] == 2
    assert encode.calls == 2


def test_a_folder_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NEXTWORD_CACHE", str(tmp_path / "file"))
    found = packed("k", Encoding())
    assert found.path is None
    assert found.ids.tolist()[0] == 1


def test_a_full_disk_leaves_nothing_behind(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    assert packed("k", Encoding()).path is None
    assert os.listdir(cache) == []


def test_what_was_used_least_recently_goes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for age, key in enumerate("abc"):
        path = packed(key, Encoding()).path
        assert path is not None
        os.utime(path, (1000 + age, 1000 + age))
    packed("a", Encoding())
    size = (cache / "a.ids").stat().st_size
    monkeypatch.setenv("NEXTWORD_CACHE_LIMIT", str(2 * size))
    packed("d", Encoding())
    assert sorted(os.listdir(cache)) == ["a.ids", "d.ids"]


def test_a_file_that_goes_at_once_is_made_in_memory(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_make_room", lambda folder, keep: keep.unlink())
    assert packed("k", Encoding()).path is None


def test_limit_and_folder_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NEXTWORD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "nextword"
    assert cache_limit() == 5_000_000_000
    monkeypatch.setenv("NEXTWORD_CACHE_LIMIT", "many")
    with pytest.raises(ConfigError, match="NEXTWORD_CACHE_LIMIT is 'many'"):
        cache_limit()


def test_keys_tell_texts_tokenizers_and_units_apart() -> None:
    words = WordTokenizer.fit([Block(b"a b", True)], TextSettings())
    keys = {
        packed_key("1", words),
        packed_key("2", words),
        packed_key("1", words, costs=True),
        packed_key("1", ByteTokenizer()),
        packed_key("1", ByteTokenizer("line")),
    }
    assert len(keys) == 5
    assert packed_key("1", words) in keys
