"""The entry point of the command line: one sentence per mistake, and the exit codes.

0 done; 1 a wrong value or bad input; 2 what the parser refuses; 128 + n after signal n. A traceback is shown
with ``--debug`` only.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import typer

from nextword.cli import options, show
from nextword.cli.app import Interrupt, app
from nextword.cli.show import ReaderGone
from nextword.core.display import printable
from nextword.core.errors import NextwordError
from nextword.system import before_torch, launch, signals


class Terminated(BaseException):
    """SIGTERM arrived: unwind, so that nothing half-written is left behind."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit with its code."""
    _prepare_streams()
    before_torch.prepare(_note)
    if launch.speaker().world > 1:
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # every process would print the same
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _first_signal)
    signals.watch()
    code = run(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _quiet_pipe()
    if launch.has_joined():  # what gloo does at the end of a process may abort it
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command in this process; returns the exit code."""
    options.reset()
    _hear_notes()
    try:
        arguments = options.without_parts(options.with_both_files(arguments))
        result = app(args=arguments, prog_name="nextword", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except typer.Exit as stop:
        return stop.exit_code
    except (Interrupt, KeyboardInterrupt) as stop:
        return _stopped(str(stop) or "stopped", 128 + signal.SIGINT)
    except Terminated:
        return _stopped("terminated", 128 + signal.SIGTERM)
    except ReaderGone:
        return _quiet_pipe()
    except launch.Silent:
        return 1
    except NextwordError as error:
        return _fail(str(error), 1)
    except OSError as error:
        return _fail(_system_error(error), 1)
    except MemoryError:
        return _fail(
            "out of memory; use a smaller text or model, or stop other programs; n-grams are trained within "
            "a limit with: nextword train DATA --set train.memory=500M",
            1,
        )
    except RecursionError as error:
        return _fail(f"the input is nested too deeply ({error})", 1)
    except Exception as error:
        return _other(error)


def _system_error(error: OSError) -> str:
    """Explain an error of the system that nothing else has: with the file, or of our own output."""
    if isinstance(error.filename, (str, bytes)):
        return f"{os.fsdecode(error.filename)}: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"the output could not be written ({error.strerror}); free some space"
    return error.strerror or str(error)


def _other(error: Exception) -> int:
    """Let the parser show its own errors; anything else is a bug of ours, reported as one."""
    show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
    if callable(show) and isinstance(code, int):
        if launch.speaker().is_heard:
            show()
        return code
    if type(error).__name__ == "Abort":
        return _stopped("stopped", 128 + signal.SIGINT)
    said = f"{type(error).__name__}: {error}"
    return _fail(f"internal error, please report it: {said} (--debug shows where)", 1)


def _fail(sentence: str, code: int) -> int:
    if options.debug():
        import traceback

        traceback.print_exc()
    process = launch.speaker()
    if process.is_heard:
        who = "" if process.is_first else f"rank {process.rank}: "
        print(f"nextword: {who}{printable(sentence)}", file=sys.stderr)
    return code


class _Notes(logging.Handler):
    """Prints what the package logs as notes, one sentence each."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one, by one process of a job."""
        if launch.speaker().is_first:
            show.note(record.getMessage())


def _hear_notes() -> None:
    """Print notes of the package on standard error, once, whatever other packages do with their logs."""
    log = logging.getLogger("nextword")
    if not any(isinstance(each, _Notes) for each in log.handlers):
        log.addHandler(_Notes(logging.WARNING))


def _note(sentence: str) -> None:
    """Print a note, by one process per machine."""
    if launch.speaker().local_rank == 0:
        show.note(f"{sentence}; this was tested once for this machine (see nextword doctor)")


def _stopped(sentence: str, code: int) -> int:
    """Report a signal, which goes to all processes of a job, once."""
    return _fail(sentence, code) if launch.speaker().is_first else code


def _quiet_pipe() -> int:
    """End quietly when the reader is gone (``| head``); nothing more is written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 128 + signal.SIGPIPE


def _prepare_streams() -> None:
    """Write UTF-8 whatever the locale; what cannot be encoded is escaped on standard error."""
    for stream, errors in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors=errors)


def _first_signal(number: int, frame: FrameType | None) -> None:
    """Unwind on the first signal; a second one ends the program at once."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _second_signal)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated


def _second_signal(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)
