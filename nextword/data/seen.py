"""Tell whether a measured text is one that the run was trained on: its numbers then say little."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from nextword.core.contracts import Block
from nextword.core.errors import NextwordError
from nextword.data.encode import DataFacts
from nextword.data.source import Source
from nextword.data.split import whole_names


class SeenText:
    """Compares a text with the facts of a training text while it is read.

    The hash of a training text is stored with the run. It is compared with that of as many bytes at the
    beginning of the new text: a network trains on the beginning and holds out the end.
    """

    def __init__(self, facts: DataFacts) -> None:
        self._facts, self._hash, self._read = facts, hashlib.sha256(), 0
        self.begins_the_text = False  # known once the text has been read

    def watch(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Pass on the blocks of a text."""
        for block in blocks:
            before, self._read = self._read, self._read + len(block.data)
            if before < self._facts.bytes:
                self._add(block, self._facts.bytes - before)
            yield block

    def _add(self, block: Block, rest: int) -> None:
        data: Any = block.data
        self._hash.update(data[:rest])
        if rest <= len(data):  # a part of a text ends as a document does, or in the middle of one
            ended = self._hash.copy()
            ended.update(b"\0")
            self.begins_the_text = self._facts.sha256 in (self._hash.hexdigest(), ended.hexdigest())
        elif block.ends_document:
            self._hash.update(b"\0")

    def shared_file(self, source: Source, settings: Any) -> str | None:
        """Return the first file of a text that the run was also trained on, where that is still there."""
        try:
            trained = Source.for_training(whole_names(self._facts.names), settings)
        except (NextwordError, OSError):
            return None
        return trained.shares_a_file_with(source)
