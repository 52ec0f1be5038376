"""Turn what the user named into a list of files: files, folders, patterns, ``-``, and corpora by name.

Everything wrong with a path is reported here, before a byte is read; a name that does not exist is
answered with the nearest existing ones.
"""

from __future__ import annotations

import difflib
import errno
import glob
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nextword.core.errors import DataError
from nextword.data.corpora import corpus_files, corpus_names

STDIN = ("-", "/dev/stdin")
ENDINGS = {
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".raw": "text",
    ".tok": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}


@dataclass(frozen=True)
class Source:
    """One file to read."""

    path: str
    named: bool = True  # the user named it; False: it was found in a folder or by a pattern
    size: int | None = None  # None: readable only once (a pipe, standard input)

    @property
    def shown(self) -> str:
        """Its name in messages; a file name that is not UTF-8 is shown with escapes."""
        if self.path in STDIN:
            return "standard input"
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")

    @property
    def format(self) -> str:
        """The format its extension implies."""
        name = self.path.lower().removesuffix(".gz")
        return ENDINGS.get(os.path.splitext(name)[1], "text")


def resolve(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Source]:
    """Return the files the user named, in order; those of a folder or a pattern sorted by name."""
    named = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not named:
        raise DataError(
            "no data was given; give a file, a folder, a pattern, a corpus or - for standard input"
        )
    return [source for path in named for source in _resolve_one(os.fspath(path))]


def _resolve_one(path: str) -> list[Source]:
    if path in STDIN:
        return [Source(path)]
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return _not_a_path(path)
    except (OSError, ValueError) as error:
        raise DataError(_why(error), Source(path).shown) from error
    if stat.S_ISDIR(found.st_mode):
        return _folder(path)
    return [_file(path, found, named=True)]


def _file(path: str, found: os.stat_result, named: bool) -> Source:
    return Source(path, named, found.st_size if stat.S_ISREG(found.st_mode) else None)


def _folder(path: str) -> list[Source]:
    files = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            ending = os.path.splitext(name.lower().removesuffix(".gz"))[1]
            full = os.path.join(folder, name)
            if ending in ENDINGS and not name.startswith(".") and os.path.isfile(full):
                files.append(_file(full, os.stat(full), named=False))
    if not files:
        raise DataError(
            f"the folder contains no text; its files must end in {', '.join(ENDINGS)} (or these with .gz), "
            "or be named one by one",
            Source(path).shown,
        )
    return files


def _not_a_path(path: str) -> list[Source]:
    """Resolve a pattern or a corpus's name; anything else is a missing file."""
    if os.path.islink(path):
        raise DataError("this is a symbolic link to a file that does not exist", Source(path).shown)
    if any(character in path for character in "*?["):
        files = {
            os.path.realpath(name): name for name in sorted(glob.glob(path, recursive=True), reverse=True)
        }
        found = sorted(name for name in files.values() if os.path.isfile(name))  # links may form loops
        if not found:
            raise DataError("no file matches this pattern", Source(path).shown)
        return [_file(name, os.stat(name), named=False) for name in found]
    if (corpus := corpus_files(path)) is not None:
        return [_file(str(file), file.stat(), named=len(corpus) == 1) for file in corpus]
    raise DataError(f"there is no such file{_nearest(path)}", Source(path).shown)


def _nearest(path: str) -> str:
    """Suggest the neighbouring files and the corpora with the most similar names."""
    folder, name = os.path.split(path)
    try:
        beside = os.listdir(folder or ".")
    except OSError:
        beside = []
    near = [Source(os.path.join(folder, found)).shown for found in _close(name, beside)]
    near += _close(path, corpus_names())
    here = "" if os.path.isdir(folder or ".") else f", nor the folder '{Source(folder).shown}'"
    return here + ("; did you mean " + " or ".join(f"'{found}'" for found in near[:3]) + "?" if near else "")


def _close(name: str, names: Sequence[str]) -> list[str]:
    return difflib.get_close_matches(name, names, n=3, cutoff=0.6)


def _why(error: OSError | ValueError) -> str:
    """Describe a system error."""
    number = getattr(error, "errno", None)
    if number == errno.ELOOP:
        return "this is a loop of symbolic links; give the file itself"
    if number in (errno.EACCES, errno.EPERM):
        return "permission denied; make the file readable with chmod, or copy it"
    if number == errno.ENAMETOOLONG:
        return "the file name is too long; was a text given instead of a file?"
    return f"this cannot be read ({getattr(error, 'strerror', None) or error})"


def unreadable(error: OSError, source: Source) -> DataError:
    """Return the error for an existing file that cannot be opened."""
    return DataError(_why(error), source.shown)


def same_file(one: Sequence[Source], other: Sequence[Source]) -> str | None:
    """Return the first file in both lists: training text must not be used for validation."""
    seen = {Path(source.path).resolve() for source in one if source.path not in STDIN}
    both = [source for source in other if source.path not in STDIN and Path(source.path).resolve() in seen]
    return both[0].shown if both else None
