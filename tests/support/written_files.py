"""Files that a test writes and reads."""

from __future__ import annotations

from pathlib import Path


def write(path: Path, content: str | bytes) -> Path:
    """Write a file; returns its path."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
