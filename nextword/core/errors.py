"""Errors a user can cause or meet, one class per thing a caller may want to catch.

NextwordError
├── ConfigError        a setting, model name or option has a wrong value
│   └── SourceRefusedError   a source was given to a model that reads none
├── DataError          a text or table cannot be read (names file and line)
├── RunError           a run folder is missing, damaged, busy or of another kind
│   └── DamagedError   bytes on disk are not what was written
├── FormatError        a foreign file (ARPA, tokenizer.json, compressed file) is malformed
├── TrainingError      the loss or the gradient is NaN or infinite, or memory ran out
├── ContextError       the model has no distribution here (`mle` in an unseen context)
└── MissingPart        an optional dependency is not installed

Every message is one sentence that names the file and line or the setting, what was found,
what is allowed and what to do next. The command line prints it and exits with code 1.
"""

from __future__ import annotations

import os


class NextwordError(Exception):
    """An error that one sentence can explain; catch it to catch all of them."""


class ConfigError(NextwordError):
    """A setting, a model name or an option has an invalid value."""


class SourceRefusedError(ConfigError):
    """A source was given to a model that reads none."""


class DataError(NextwordError):
    """A text or table cannot be read; the message starts with ``file:line``."""

    def __init__(
        self,
        message: str,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.path, self.line, self.column = path, line, column
        place = "" if path is None else os.fspath(path)
        for number in (line, column):
            place += "" if number is None else f":{number}"
        super().__init__(f"{place}: {message}" if place else message)


class RunError(NextwordError):
    """A run folder is missing, busy, or not what the command needs."""


class DamagedError(RunError):
    """A file of a run is not what was written: its size, checksum or contents differ."""


class FormatError(DataError):
    """A foreign file (ARPA, tokenizer, compressed text) violates its format."""


class TrainingError(NextwordError):
    """Training cannot continue: the loss or the gradient is NaN or infinite, or memory ran out."""


class ContextError(NextwordError):
    """The model defines no distribution in this context."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C, with a sentence that says what was kept and how to continue."""


class MissingPart(NextwordError):  # noqa: N818 - it names what is missing
    """An optional dependency is not installed; the message says which command installs it."""

    def __init__(self, part: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{part}', which is not installed; "
            f"run: pip install 'nextword[{extra}]'"
        )
