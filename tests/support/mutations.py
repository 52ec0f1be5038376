"""Damaged copies of files: bytes changed, cut, doubled, or replaced by what a parser may stumble over."""

from __future__ import annotations

import random
import re
from pathlib import Path

from nextword.store.manifest import MANIFEST, Manifest, hash_file, read_manifest

# What has broken a parser somewhere: numbers that are none, control characters, parts of other formats.
NUMBERS = (b"nan", b"NaN", b"inf", b"-inf", b"1e999", b"-1e999", b"1_000", b"0x10", b"-1", b"0", b"9" * 20)
VALUES = (b"null", b"true", b"[]", b"{}", b'""')
SPACES = (b"\n", b"\n\n", b"\r", b"\t", b" ", b"\0", b"\v", b"\f", b"\x1c", b"\x85", b"\xe2\x80\xa8")
BROKEN = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\u0000", b"\\ud800", b"\\")
SIGNS = (b"'", b'"', b",", b";", b"=", b"[", b"]", b"{", b"}", b"#", b"a.b")
WORDS = (b"<s>", b"</s>", b"<unk>", b"\\end\\", b"\\data\\")
PIECES = NUMBERS + VALUES + SPACES + BROKEN + SIGNS + WORDS
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def mutated(data: bytes, generator: random.Random) -> bytes:
    """Return the bytes with one to three changes."""
    found = bytearray(data)
    for _ in range(generator.randrange(1, 4)):
        start = generator.randrange(len(found) + 1)
        kind = generator.randrange(6)
        if kind == 0 and found:
            found[start % len(found)] ^= 1 << generator.randrange(8)
        elif kind == 1:
            found[start : start + generator.randrange(8)] = generator.choice(PIECES)
        elif kind == 2:
            del found[start : start + generator.randrange(1, 40)]
        elif kind == 3:
            other = generator.randrange(len(found) + 1)
            found[start:start] = found[other : other + generator.randrange(1, 60)]
        elif kind == 4:
            found = _other_number(found, generator)
        else:
            lines = bytes(found).split(b"\n")
            lines.insert(generator.randrange(len(lines)), lines.pop(generator.randrange(len(lines))))
            found = bytearray(b"\n".join(lines))
    return bytes(found)


def _other_number(data: bytearray, generator: random.Random) -> bytearray:
    """Replace a number by another value, or by what is no number."""
    numbers = list(_NUMBER.finditer(data))
    if not numbers:
        return data
    chosen = generator.choice(numbers)
    return data[: chosen.start()] + generator.choice(NUMBERS + VALUES) + data[chosen.end() :]


def put_in_run(run: Path, name: str, data: bytes) -> None:
    """Change a file of a run and its manifest, so that its hash is right."""
    (run / name).write_bytes(data)
    manifest = read_manifest(run)
    files = {**manifest.files, name: hash_file(run / name)}
    (run / MANIFEST).write_bytes(Manifest(files, manifest.created).to_json())
