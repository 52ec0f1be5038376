"""Parts from a user's own Python file: ``--set model.ffn=./mine.py:MyFFN``.

A file is loaded only when the user names it on the command line (``--set`` or ``--parts``) or calls `load`;
never because a run folder or a recipe says so. A run stores the file's name, the class and the SHA-256 of the
file (``mine.py:MyFFN@…``); to open it, the same file has to be given with ``--parts``.
"""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from nextword.core.errors import ConfigError

# A part as a user types it, and as a run stores it.
TYPED = re.compile(r"(?P<path>.+\.py):(?P<attribute>[A-Za-z_]\w*)")
STORED = re.compile(r"(?P<file>[^/\\@]+\.py):(?P<attribute>[A-Za-z_]\w*)@(?P<digest>[0-9a-f]{64})")
_loaded: dict[tuple[str, str], ModuleType] = {}  # (file name, SHA-256) -> its module


class _Bytes(importlib.abc.InspectLoader):
    """Runs the very bytes whose SHA-256 was computed, not the file a second time."""

    def __init__(self, source: bytes, path: str) -> None:
        self.source, self.path = source, path

    def get_source(self, fullname: str) -> str:
        """Return the text of the file."""
        return importlib.util.decode_source(self.source)

    def get_code(self, fullname: str) -> CodeType:
        """Return the code, with the file's name for error messages."""
        return self.source_to_code(self.source, self.path)


def load(path: str | os.PathLike[str]) -> str:
    """Run a file of parts, so that settings may name them; return its SHA-256."""
    file = Path(path)
    try:
        source = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{os.fspath(path)}, a file of parts, cannot be read: {error.strerror}") from error
    digest = hashlib.sha256(source).hexdigest()
    if (file.name, digest) in _loaded:
        return digest
    name = f"nextword_own_{digest[:16]}"
    loader = _Bytes(source, os.fspath(file))
    spec = importlib.util.spec_from_loader(name, loader, origin=os.fspath(file))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = os.fspath(file)
    sys.modules[name] = module  # dataclasses look their module up by its name
    try:
        loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        line = _line(error, os.fspath(file))
        raise ConfigError(
            f"{os.fspath(file)}{line}, a file of parts, does not run ({type(error).__name__}: {error}); "
            "correct it"
        ) from error
    _loaded[file.name, digest] = module
    return digest


def named(typed: str) -> str:
    """Load the file that a user typed, and return the part's name as runs store it."""
    found = TYPED.fullmatch(typed)
    assert found is not None
    stored = f"{Path(found['path']).name}:{found['attribute']}@{load(found['path'])}"
    find(stored)
    return stored


def known(typed: str) -> str:
    """Return the stored name of a part whose file was loaded before; raise if none of this name was."""
    found = TYPED.fullmatch(typed)
    assert found is not None
    file, attribute = Path(found["path"]).name, found["attribute"]
    digests = [own for name, own in _loaded if name == file]
    if not digests:
        raise ConfigError(_missing(file, attribute, ""))
    return f"{file}:{attribute}@{digests[-1]}"


def find(stored: str) -> Any:
    """Return a part of a file that was loaded; raise if it was not, or has changed."""
    found = STORED.fullmatch(stored)
    assert found is not None
    file, attribute, digest = found["file"], found["attribute"], found["digest"]
    module = _loaded.get((file, digest))
    if module is None:
        raise ConfigError(_missing(file, attribute, digest))
    if not hasattr(module, attribute):
        raise ConfigError(f"{module.__file__} has no '{attribute}'; name a class that it defines")
    return getattr(module, attribute)


def _missing(file: str, attribute: str, digest: str) -> str:
    """Say why a part is not there: its file was not given, or is another one."""
    others = [own for name, own in _loaded if name == file]
    if others:
        return (
            f"{file} has SHA-256 {others[-1][:12]}…, but the run was trained with '{attribute}' of one with "
            f"{digest[:12]}…; give that file with --parts"
        )
    whose = f" (SHA-256 {digest[:12]}…)" if digest else ""
    return (
        f"the run has a part '{attribute}' from the file {file}{whose}, and code is never loaded because a "
        f"run says so; if you trust the file, give it: --parts {file}"
    )


def _line(error: Exception, file: str) -> str:
    """Return ``:line`` of the file at which an error was raised."""
    trace, line = error.__traceback__, getattr(error, "lineno", None)
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f":{line}"
