"""Settings from TOML files and ``--set key=value``, checked before any data is read, and written back.

A typo must never train for an hour: an unknown key is an error that suggests the nearest name, a wrong
value an error that says what was found and what is allowed.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from nextword.core import own_parts
from nextword.core.errors import ConfigError
from nextword.core.settings import Choice, Settings
from nextword.core.suggestions import listed, nearest

Groups = Mapping[str, type[Settings]]  # "model" -> NgramSettings, "text" -> TextSettings, …
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN = 80


class Typed(str):
    """A value as typed after ``--set key=``: TOML, or a bare word taken as a string."""


class Stored(Typed):
    """A value that was typed when an interrupted training run was started: it never loads a file of parts."""


def parse_sets(assignments: Iterable[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Parse ``["model.order=3", …]`` into a dictionary; a later assignment wins. A mapping is copied."""
    if isinstance(assignments, Mapping):
        return dict(assignments)
    found: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"'--set {assignment}' has no value; write key=value, as in model.order=3")
        found[key.strip()] = Typed(value.strip())
    return found


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the tables of a TOML file as a tree."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"{os.fspath(path)} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{os.fspath(path)} is not valid TOML: {error}") from error


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Return the tables of a TOML text; ``name`` is used in error messages."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{name} is not valid TOML: {error}") from error


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten ``{"model": {"order": 3}}`` into ``{"model.order": 3}``."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def build(groups: Groups, *sources: Mapping[str, Any]) -> dict[str, Settings]:
    """Build the settings of every group from dotted keys; a later source overrides an earlier one."""
    values: dict[str, dict[str, Any]] = {group: {} for group in groups}
    fields = {f"{group}.{name}": each for group, kind in groups.items() for name, each in leaves(kind)}
    for source in sources:
        for key, value in flatten(source).items():
            if key not in fields:
                raise ConfigError(_unknown(key, list(fields)))
            *path, name = key.split(".")
            inner: dict[str, Any] = values
            for part in path:
                inner = inner.setdefault(part, {})
            inner[name] = _typed_value(value, fields[key], key)
    return {group: _validate(group, settings, values[group]) for group, settings in groups.items()}


def keys(groups: Groups) -> list[str]:
    """Return every setting as written after ``--set``."""
    return [f"{group}.{name}" for group, settings in groups.items() for name, _ in leaves(settings)]


def leaves(kind: type[Settings]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield every setting of a group; those of a group within it have dotted names, as ``experts.count``."""
    for name, field in kind.model_fields.items():
        inner = inner_group(field)
        if inner is None:
            yield name, field
        else:
            yield from ((f"{name}.{below}", each) for below, each in leaves(inner))


def inner_group(field: FieldInfo) -> type[Settings] | None:
    """Return the group that a field holds, such as the options of one part; None: it is a single setting."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Settings) else None


def to_toml(groups: Mapping[str, Settings], head: Mapping[str, Any]) -> str:
    """Return the complete configuration: every setting with its value and its description as a comment."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in head.items()]
    for group, settings in groups.items():
        lines += _table(_key(group), settings)
    return "\n".join(lines) + "\n"


def _table(title: str, settings: Settings) -> list[str]:
    """Return a group as a TOML table, then the groups within it; those that change nothing are left out."""
    lines, within = ["", f"[{title}]"], []
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, Settings):
            within += [] if name in settings.idle_groups() else _table(f"{title}.{_key(name)}", value)
            continue
        comment = f"  # {field.description}" if field.description else ""
        lines.append(f"{_key(name)} = {_value(value)}{comment}")
    return lines + within


def shown(value: Any) -> str:
    """Return a value as it is written in a recipe and after ``--set``."""
    return _value(value)


def _unknown(key: str, allowed: list[str]) -> str:
    """Return the message for a setting that does not exist: the nearest, and what is allowed."""
    group, _, name = key.partition(".")
    near = [each for each in allowed if each.partition(".")[0] == group] or allowed
    guess = nearest(name or key, [each.partition(".")[2] for each in near])
    full = next((each for each in near if guess is not None and each.endswith(f".{guess}")), None)
    if not allowed:
        return f"unknown setting '{key}'; this command has no settings here, so leave it out"
    hint = f"did you mean '{full}'? Allowed" if full else "allowed"
    return f"unknown setting '{key}'; {hint}: {listed(near, 'nextword list MODEL')}"


def _typed_value(value: Any, field: FieldInfo, key: str) -> Any:
    if isinstance(value, Typed):
        is_now, value = not isinstance(value, Stored), _parse_value(str(value), field)
        is_file = isinstance(value, str) and own_parts.TYPED.fullmatch(value)
        if is_file and any(_is_part(each) for each in field.metadata):
            value = own_parts.named(value) if is_now else own_parts.known(value)
    if isinstance(value, bool) and not _accepts(field.annotation, bool):
        raise ConfigError(f"'{key}' is {_value(value)}; it must not be true or false")
    return value


def _is_part(constraint: Any) -> bool:
    return isinstance(constraint, Choice)


def _parse_value(text: str, field: FieldInfo) -> Any:
    """Parse as TOML if it is valid TOML; otherwise, and for string settings, return the text unchanged."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    if field.annotation is str and not isinstance(value, str):
        return text
    return value


def _accepts(annotation: Any, wanted: type) -> bool:
    if annotation is wanted or annotation is Any:
        return True
    parts = typing.get_args(annotation) if _is_union(annotation) else ()
    return any(_accepts(part, wanted) for part in parts)


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType, typing.Annotated)


def _validate(group: str, settings: type[Settings], values: dict[str, Any]) -> Settings:
    try:
        return settings(**values)
    except ValidationError as error:
        raise ConfigError(_sentence(group, settings, error)) from error


def _sentence(group: str, settings: type[Settings], error: ValidationError) -> str:
    """Describe the first error in one sentence: the setting, the value found, what is allowed."""
    first = error.errors(include_url=False)[0]
    kind, context = first["type"], first.get("ctx", {})
    name = ".".join([group, *_path(settings, first["loc"])])
    if not first["loc"]:  # a rule across several settings
        return f"the settings of '{group}' contradict each other: {_reason(first)}"
    found = repr(first["input"]) if isinstance(first["input"], str) else _value(first["input"])
    allowed = {
        "greater_than_equal": "it must be {ge} or more",
        "greater_than": "it must be more than {gt}",
        "less_than_equal": "it must be {le} or less",
        "less_than": "it must be less than {lt}",
        "literal_error": "allowed: {expected}",
        "int_parsing": "it must be a whole number",
        "int_type": "it must be a whole number",
        "int_from_float": "it must be a whole number",
        "float_parsing": "it must be a number",
        "float_type": "it must be a number",
        "bool_parsing": "it must be true or false",
        "bool_type": "it must be true or false",
        "string_type": "it must be a string",
    }.get(kind, "{reason}")
    limits = {key: _plain(value) for key, value in context.items() if key != "error"}
    return f"'{name}' is {found[:_SHOWN]}; {allowed.format(**limits, reason=_reason(first))}"


def _path(settings: type[Settings], place: tuple[int | str, ...]) -> list[str]:
    """Return the names of the setting where an error is; places within its value are left out."""
    if not place:
        return []
    field = settings.model_fields.get(str(place[0]))
    inner = None if field is None else inner_group(field)
    return [str(place[0]), *(_path(inner, place[1:]) if inner else [])]


def _reason(first: Any) -> str:
    cause = first.get("ctx", {}).get("error")
    said = str(cause) if cause is not None else str(first["msg"])
    return f"it {said}" if said.startswith("must ") else said


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    """Format a value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(value) if math.isfinite(value) else ("nan" if math.isnan(value) else f"{value}")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return _text(str(value))


def _text(text: str) -> str:
    """Format a basic TOML string, escaping whatever could end a line or the string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else _escape(ord(c)) for c in escaped) + '"'


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
