"""The root of all settings, and the type of a setting that names a part.

Settings are frozen, and an unknown key is an error, never a silent default. ``head: Slot["head"]`` is a
setting whose value is a name of the catalog's slot: ours, or one that another package adds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from nextword.core import catalog


class Settings(BaseModel):
    """A group of settings. Default, help and limits are on one line, next to the code they configure."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


@dataclass(frozen=True)
class Choice:
    """What a value may be: a name of a slot, or one of a few words beside them, such as "auto".

    The name is looked up when a value is checked, so that a part registered later counts too; the part itself
    is not imported.
    """

    slot: str
    extra: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Everything that is allowed now."""
        return [*self.extra, *catalog.names(self.slot)]

    def check(self, name: str) -> str:
        """The name itself, or an error that says what is allowed."""
        if name in self.extra or catalog.has(self.slot, name):
            return name
        raise ValueError(catalog.suggestion(name, self.names()))

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        return {**handler(schema), "enum": self.names()}


if TYPE_CHECKING:
    Slot: Any  # a type checker would take the slot's name for the name of a type
else:

    class Slot:
        """``Slot["head"]``: a string, the name of a part; ``Slot["batches", "auto"]``: a name, or "auto"."""

        def __class_getitem__(cls, names: str | tuple[str, ...]) -> Any:
            slot, *extra = (names,) if isinstance(names, str) else names
            return Annotated[str, Choice(slot, tuple(extra))]


def allowed(field: FieldInfo) -> Sequence[str]:
    """The names that a setting takes; empty where it does not choose a part."""
    return next((each.names() for each in field.metadata if isinstance(each, Choice)), [])


_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(i?)[bB]?\s*")
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(value: object) -> object:
    """Parse a size into bytes: ``M`` is a million, ``Mi`` 1,048,576; only strings are changed."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value)
    if match is None:
        raise ValueError("write a size as 500M, 2G or a number of bytes")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** _POWER[match[2].lower()])


def show_size(count: float) -> str:
    """Format a number of bytes with its unit: ``12.3 MB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
