"""``decompress``: the file that `compress` was given, byte for byte."""

from __future__ import annotations

from typing import Any

from nextword.api.arguments import checked
from nextword.api.compress import ENDING, read_file, write_file
from nextword.api.opened import Name, Opened, language_model
from nextword.evaluation.compress import compressor


@checked
def decompress(run: Opened | Name, data: bytes, source: str = "") -> bytes:
    """Return what `compress` was given; ``source`` names the file in errors.

    >>> run = nextword.load("runs/tiny")
    >>> nextword.decompress(run, nextword.compress(run, b"a dog"))
    b'a dog'
    """
    return _decompressed(language_model(run, forward=True), data, source)


def _decompressed(run: Opened, data: bytes, source: str) -> bytes:
    return compressor.decompress(run.model, run.tokenizer, data, run.fingerprint, source)


def decompress_file(run: Opened | Name, file: str, out: str | None = None) -> dict[str, Any]:
    """Decompress a file; the new one has its name without ``.nwz`` unless ``out`` names it."""
    found = language_model(run, forward=True)
    coded = read_file(file)
    target = out or (file.removesuffix(ENDING) if file.endswith(ENDING) else file + ".out")
    data = _decompressed(found, coded, file)
    write_file(target, data)
    return {"path": target, "file": file, "bytes": len(data), "compressed": len(coded)}
