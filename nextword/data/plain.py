"""Read plain text as checked blocks that end at a line end; every line-based format is read from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from nextword.core.contracts import Block
from nextword.core.errors import DataError
from nextword.data.paths import Source, read_bytes
from nextword.data.settings import DataSettings

BLOCK = 1 << 22  # bytes per block


class NoTokens(DataError):  # noqa: N818 - it names what is missing
    """A file without tokens: an error if the user named it, a note if it was found in a folder."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


def text_blocks(source: Source, checker: TextChecker, one_document: bool = True) -> Iterator[Block]:
    """Yield a plain text as checked blocks, cut at line ends; a very long line spans several blocks."""
    waiting: Block | None = None
    for data in _cut(read_bytes(source)):
        line = checker.line
        data = checker.check(data)
        if waiting is not None:
            yield waiting
        waiting = Block(data, False, source.shown, line)
    try:
        checker.finish()
    except DataError as error:
        if checker.has_words:
            raise
        raise NoTokens(str(error)) from None
    if waiting is not None:
        yield Block(waiting.data, one_document, waiting.source, waiting.line)


def _cut(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut into blocks that end at a line end or, if a line is too long, between two characters."""
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size < BLOCK:
            continue
        data = b"".join(parts)
        end = data.rfind(b"\n") + 1 or _between_characters(data)
        yield data[:end]
        parts, size = [data[end:]], len(data) - end
    data = b"".join(parts)
    if data:
        yield data


def _between_characters(data: bytes) -> int:
    """Return a place near the end that splits neither a UTF-8 character nor a CR LF."""
    end = len(data)
    while end > len(data) - 4 and 0x80 <= data[end - 1] < 0xC0:
        end -= 1
    if data[end - 1] >= 0xC0 or data[end - 1] == 0x0D:
        end -= 1
    return end


BOM = b"\xef\xbb\xbf"
_REPLACEMENT = "\ufffd".encode()
_PIECE = 1 << 18  # decoding is fastest when a piece fits into the cache
_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_LFS = b"version https://git-lfs.github.com/spec/"
_COMBINING = b"\xcc"  # first byte of U+0300 … U+033F only
_COMPOSED = (b"\xc3", b"\xc4", b"\xc5")  # Latin letters with accents as one character

Fail = Callable[[DataError], None]


def stop(error: DataError) -> None:
    """Raise the error: the default treatment of a problem."""
    raise error


@dataclass
class TextChecker:
    """Checks one file from its first block to its last, and collects notes."""

    shown: str
    settings: DataSettings
    raw: bool = False  # keep CRLF unchanged
    fail: Fail = stop
    is_set: bool = True  # the command takes --set data.on_error, so that it can be advised
    line: int = 1
    size: int = 0  # bytes so far
    newlines: int = 0
    returns: int = 0
    crlf: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    has_words: bool = False
    remarks: list[str] = field(default_factory=list)  # of the format that is read from the text

    def check(self, data: bytes) -> bytes:
        """Check a block and return it as it may be used; problems are passed to ``fail``."""
        if self.size == 0:
            data = self._head(data)
        self.size += len(data)
        if b"\0" in data:
            self._nul(data)
        if not data.isascii():
            data = self._not_ascii(data)
        lines = data.count(b"\n")
        if b"\r" in data:
            data = self._returns(data)
        self.newlines += lines
        self.line += lines
        self.has_words = self.has_words or not (data.isspace() or not data)
        return data

    def finish(self) -> None:
        """Report what only the whole file shows; call it after the last block."""
        lone = self.returns - self.crlf
        if self.size == 0:
            self._problem("the file is empty and has no tokens")
        elif not self.has_words:
            self._problem(f"the file is blank ({self.newlines:,} blank lines) and has no tokens")
        elif self.newlines == 0 and lone:
            self._problem(
                f"the file has 0 newlines and {lone:,} carriage returns, as on old Macs; "
                "convert it with: tr '\\r' '\\n'",
                1,
            )

    def notes(self) -> list[str]:
        """Describe what was found and handled."""
        found, say = self.counts, list(self.remarks)
        if found.get("bom"):
            say.append("a byte order mark at the start was removed")
        if found.get("inner bom"):
            say.append(f"{found['inner bom']:,} byte order marks at line starts were removed (joined files?)")
        if self.crlf:
            done = "kept" if self.raw or self.settings.newlines == "keep" else "read as plain line ends"
            say.append(f"{self.crlf:,} lines end in CRLF, {done}")
        if found.get("skipped"):
            say.append(f"{found['skipped']:,} lines that are not UTF-8 were skipped")
        if found.get("replaced"):
            say.append(f"{found['replaced']:,} bytes that are not UTF-8 were replaced by U+FFFD")
        if found.get("U+FFFD"):
            say.append(f"{found['U+FFFD']:,} replacement characters (U+FFFD): the text was damaged earlier")
        if found.get("without text"):
            say.append(f"{found['without text']:,} records have no text (null) and were read as empty")
        if found.get("combining") and found.get("composed"):
            say.append(
                f"{found['combining']:,} accents are separate characters (NFD) and others are not; "
                "--set text.normalize=nfc makes them one"
            )
        return [f"{self.shown}: {sentence}" for sentence in say]

    def without_text(self) -> None:
        """Count a record whose text is null."""
        self._count("without text", 1)

    def _count(self, what: str, n: int) -> None:
        if n:
            self.counts[what] = self.counts.get(what, 0) + n

    def _problem(self, message: str, line: int | None = None, column: int | None = None) -> None:
        self.fail(DataError(message, self.shown, line, column))

    def _head(self, data: bytes) -> bytes:
        """Check the first bytes for tell-tale formats."""
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            self._problem("this looks like UTF-16; convert it with: iconv -f UTF-16 -t UTF-8", 1)
        if data.startswith(BOM):
            self._count("bom", 1)
            self.size += len(BOM)
            data = data[len(BOM) :]
        if data.startswith(_LFS):
            self._problem("this is a Git LFS pointer, not the file itself; run: git lfs pull", 1)
        if _HTML.match(data[:4096]):
            self._problem(
                "this looks like HTML (a web page instead of a download?); extract its text first", 1
            )
        return data

    def _nul(self, data: bytes) -> None:
        at = data.index(b"\0")
        wide = wide_encoding(data) if self.size == len(data) else None  # pairs are counted from the start
        hint = (
            "a NUL byte, which text never contains; is the file binary? Remove it with: tr -d '\\000'"
            if wide is None
            else f"this looks like UTF-16; convert it with: iconv -f {wide} -t UTF-8"
        )
        self._problem(hint, *self._place(data, at))

    def _place(self, data: bytes, at: int) -> tuple[int, int]:
        """Return line and column (in characters, from 1) of a byte of the block."""
        start = data.rfind(b"\n", 0, at) + 1
        return self.line + data.count(b"\n", 0, at), len(data[start:at].decode("utf-8", "replace")) + 1

    def _not_ascii(self, data: bytes) -> bytes:
        at = first_invalid(data)
        if at is not None:
            data = self._invalid(data, at)
        if self.line > 1 and data.startswith(BOM):
            self._count("inner bom", 1)
            data = data[len(BOM) :]
        if b"\n" + BOM in data:  # elsewhere U+FEFF is an ordinary character
            self._count("inner bom", data.count(b"\n" + BOM))
            data = data.replace(b"\n" + BOM, b"\n")
        self._count("U+FFFD", data.count(_REPLACEMENT) if _REPLACEMENT in data else 0)
        if _COMBINING in data:
            self._count("combining", data.count(_COMBINING))
        if "composed" not in self.counts:
            self._count("composed", int(any(byte in data for byte in _COMPOSED)))
        return data

    def _invalid(self, data: bytes, at: int) -> bytes:
        """Fail, skip or replace, as the setting says."""
        if self.settings.on_error == "stop":
            offset = self.size - len(data) + at
            self._problem(explain_invalid(data, at, offset, self.is_set), *self._place(data, at))
        if self.settings.on_error == "skip":
            lines = data.split(b"\n")
            kept = [line for line in lines if first_invalid(line) is None]
            self._count("skipped", len(lines) - len(kept))
            return b"\n".join(kept)
        before = data.count(_REPLACEMENT)
        data = data.decode("utf-8", "replace").encode("utf-8")
        self._count("replaced", data.count(_REPLACEMENT) - before)
        self._count("U+FFFD", before - data.count(_REPLACEMENT))
        return data

    def _returns(self, data: bytes) -> bytes:
        pairs = data.count(b"\r\n")
        self.crlf += pairs
        self.returns += data.count(b"\r")
        if pairs and not self.raw and self.settings.newlines == "unify":
            return data.replace(b"\r\n", b"\n")
        return data


def wide_encoding(data: bytes) -> str | None:
    """Return ``UTF-16LE`` or ``UTF-16BE`` if the text looks like it without a mark at its start.

    There the NULs stand in one half of each pair of bytes, never in the other, and the end of a line has one
    too. ASCII text with NULs in it is not UTF-16.
    """
    head = data[: 4096 & ~1]
    for name, high, low in (("UTF-16LE", head[1::2], head[0::2]), ("UTF-16BE", head[0::2], head[1::2])):
        wide_ends = sum(a == 0x0A and b == 0 for a, b in zip(low, high, strict=False))
        ends = head.count(b"\n")
        if high.count(0) > max(2, 0.3 * len(high)) and not low.count(0) and ends == wide_ends:
            return name
    return None


def first_invalid(data: bytes) -> int | None:
    """Return the position of the first byte that is not UTF-8, or None."""
    start = 0
    while start < len(data):
        stop_at = min(start + _PIECE, len(data))
        try:
            data[start:stop_at].decode("utf-8")
        except UnicodeDecodeError as error:
            if stop_at == len(data) or error.start < stop_at - start - 3:
                return start + error.start
            stop_at = start + error.start  # a character continues in the next piece
        start = stop_at
    return None


def explain_invalid(data: bytes, at: int, offset: int, is_set: bool = True) -> str:
    """Explain an invalid byte and its likely cause; ``is_set``: the command takes --set data.on_error."""
    other = ", or use --set data.on_error=skip or replace" if is_set else ""
    byte, after = data[at], data[at + 1 : at + 2]
    what = f"the byte 0x{byte:02X} (byte {offset:,} of the file) is not UTF-8"
    if byte in (0xC0, 0xC1) or (byte in (0xE0, 0xF0) and after and 0x80 <= after[0] < 0xA0):
        return f"{what}: an overlong encoding, written by faulty programs; save the file as UTF-8"
    if byte == 0xED and after and after[0] >= 0xA0:
        return f"{what}: a surrogate (CESU-8); save the file as UTF-8"
    start = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at)
    line = data[start : len(data) if end < 0 else end]
    try:
        shown = line[max(0, at - start - 20) :].decode("cp1252")[:40].strip()
    except UnicodeDecodeError:
        return f"{what}; convert the file to UTF-8{other}"
    return (
        f"{what}; as Latin-1 or Windows-1252 it reads {shown!r}: convert it with "
        f"iconv -f WINDOWS-1252 -t UTF-8{other}"
    )
