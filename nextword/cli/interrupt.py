"""Ctrl-C past the command-line parser, which would turn it into an exit code and lose its sentence."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class Interrupt(BaseException):
    """Ctrl-C; the message says what was kept, if that is known."""


class Commands(TyperGroup):
    """The commands of the program."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Ctrl-C is passed on as `Interrupt`, which the parser does not know."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Interrupt(*stop.args) from stop
