"""``compress``: code a file with a run; the size shows that bits per byte is a real code length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nextword.api.arguments import checked
from nextword.api.opened import Name, Opened, language_model
from nextword.core.errors import DataError
from nextword.evaluation.compress import compressor
from nextword.system.disk import translate, write_atomically

ENDING = ".nwz"


@checked
def compress(run: Opened | Name, data: bytes) -> bytes:
    """Compress any bytes with a run; `decompress` gives them back.

    >>> coded = nextword.compress("runs/tiny", b"the cat sat on the mat")
    >>> nextword.decompress("runs/tiny", coded)
    b'the cat sat on the mat'
    """
    return _compressed(language_model(run, forward=True), data)


def _compressed(run: Opened, data: bytes) -> bytes:
    return compressor.compress(run.model, run.tokenizer, data, run.fingerprint)


def compress_file(run: Opened | Name, file: str, out: str | None = None) -> dict[str, Any]:
    """Compress a file; the new one is ``FILE.nwz`` unless ``out`` names it."""
    found = language_model(run, forward=True)
    data = read_file(file)
    coded = _compressed(found, data)
    path = out or file + ENDING
    write_file(path, coded)
    rate = 8 * len(coded) / len(data) if data else 0.0
    return {"path": path, "file": file, "bytes": len(data), "compressed": len(coded), "bits_per_byte": rate}


def read_file(file: str) -> bytes:
    """Read a whole file; the error names a file that cannot be read."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise DataError(f"cannot read the file: {error.strerror}", file) from error


def write_file(path: str, data: bytes) -> None:
    """Write a file atomically, in a folder that exists: a mistyped one is an error."""
    try:
        write_atomically(path, data)
    except OSError as error:
        raise translate(error, Path(path)) from error
