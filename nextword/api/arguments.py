"""Where Python callers enter the verbs: arguments of a wrong type, and errors as Python spells them.

`checked` wraps every public function and every method of `Run`. What is allowed is read from the signature,
so that editors, type checkers and errors agree.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from nextword.core.errors import ConfigError, NextwordError
from nextword.core.spelling import for_python
from nextword.core.suggestions import unknown

P = ParamSpec("P")
R = TypeVar("R")
_LONGEST = 60


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of a public function against its signature, and respell its errors for Python."""
    entrance = Entrance(function)

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> R:
        try:
            entrance.check(given, named)
            made = function(*given, **named)
        except NextwordError as error:
            entrance.respell(error)
            raise
        return entrance.watch(made) if isinstance(made, types.GeneratorType) else made  # type: ignore[return-value]

    return called


class Entrance:
    """What a function takes; the annotations are looked up at the first call, when all modules are there."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.signature = inspect.signature(function)
        names = self.signature.parameters
        self.renamed = {"out": "path"} if "path" in names and "out" not in names else {}

    @functools.cached_property
    def hints(self) -> dict[str, Any]:
        """The annotation of every argument that has one."""
        module = inspect.getmodule(self.function)
        known = {**vars(typing), **(vars(module) if module else {})}
        written = {
            name: each.annotation
            for name, each in self.signature.parameters.items()
            if each.annotation is not inspect.Parameter.empty
        }
        return typing.get_type_hints(types.SimpleNamespace(__annotations__=written), known)

    def check(self, given: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Raise an error that names the first argument that is unknown or of a wrong type."""
        names = self.signature.parameters
        for name in named:
            if name not in names:
                allowed = [each for each in names if each != "self"]
                about = f"of {self.function.__name__}"
                raise ConfigError(unknown("argument", name, allowed, about))
        for name, value in self.signature.bind(*given, **named).arguments.items():
            if name not in self.hints:
                continue
            several = names[name].kind is inspect.Parameter.VAR_POSITIONAL
            for each in value if several else (value,):
                if not fits(each, self.hints[name]):
                    raise ConfigError(
                        f"'{name}' is {_shown(each)}; it must be {_listed(_words(self.hints[name]))}"
                    )

    def respell(self, error: NextwordError) -> None:
        """Name options in the message as Python does."""
        error.args = (for_python(str(error), self.renamed), *error.args[1:])

    def watch(self, items: Iterator[Any]) -> Iterator[Any]:
        """Pass on what a generator yields; its errors are respelled, too."""
        try:
            yield from items
        except NextwordError as error:
            self.respell(error)
            raise


def fits(value: object, hint: Any) -> bool:
    """Tell whether a value is what an annotation says; True and False are not numbers."""
    kind, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if kind in (types.UnionType, typing.Union):
        return any(fits(value, each) for each in inside)
    if kind is Literal:
        return value in inside
    if hint is None or hint is types.NoneType:
        return value is None
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if hint in (int, float):
        number = Integral if hint is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    if kind is Mapping:
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    if kind in (Sequence, Iterable):
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, kind):
            return False
        return not isinstance(value, (list, tuple)) or all(fits(each, inside[0]) for each in value)
    return isinstance(value, kind or hint)


def _words(hint: Any) -> list[str]:
    """Say what an annotation allows, in words."""
    kind, inside = typing.get_origin(hint), typing.get_args(hint)
    if kind in (types.UnionType, typing.Union):
        return list(dict.fromkeys(word for each in inside for word in _words(each)))
    if kind is Literal:
        return [repr(each) for each in inside]
    if kind in (Sequence, Iterable):
        return [f"a list of {_plural(inside[0])}"]
    if kind is Mapping:
        return ["a dictionary of settings"]
    name = (kind or hint).__name__
    return [_NAMES.get(name, f"a {name}")]


_NAMES = {
    "NoneType": "None", "str": "a string", "bytes": "bytes", "int": "a whole number", "float": "a number",
    "bool": "True or False", "PathLike": "a path", "Opened": "a Run",
}  # fmt: skip


def _listed(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _plural(hint: Any) -> str:
    return " or ".join(f"{word.removeprefix('a ')}s" for word in _words(hint))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
