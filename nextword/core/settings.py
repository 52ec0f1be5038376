"""The root of all settings, the settings every training has, and the types of a part's name and of a size.

Settings are frozen, and an unknown key is an error, never a silent default. ``head: Slot["head"]`` is a
setting whose value is a name of the catalog's slot: ours, or one that another package adds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from nextword.core import catalog
from nextword.core.display import show_size
from nextword.core.errors import ConfigError
from nextword.core.suggestions import same_but_case, suggestion


class Settings(BaseModel):
    """A group of settings. Default, help and limits are on one line, next to the code they configure."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
    # The values of settings in runs that were saved before there were such settings, if not the defaults.
    earlier: ClassVar[Mapping[str, Any]] = {}

    def option_groups(self) -> tuple[Settings, ...]:
        """Return the groups within this one, such as the options of its parts."""
        return tuple(value for _, value in self if isinstance(value, Settings))

    def idle_groups(self) -> Collection[str]:
        """Return the groups within this one that change nothing: those of parts that are not chosen."""
        return ()


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
        """The name as it is spelled in the catalog, or an error that says what is allowed."""
        if name in self.extra:
            return name
        found = catalog.spelled(self.slot, name) or same_but_case(name, self.extra)
        if found is None:
            raise ValueError(suggestion(name, self.names(), f"nextword list {self.slot}"))
        return found

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


class ComposedSettings(Settings):
    """Settings that name parts; a part's options are a group within, of its class ``options``."""

    @model_validator(mode="after")
    def _no_idle_options(self) -> ComposedSettings:
        """Refuse options of a part that is not chosen: they would change nothing."""
        for name in sorted(self.idle_groups()):
            value = getattr(self, name)
            if value != type(value)():
                raise ConfigError(
                    f"'model.{name}' has options of a part that this model does not have; leave them out, or "
                    f"choose it: {type(value).__doc__}"
                )
        return self

    def chosen_parts(self) -> set[tuple[str, str]]:
        """Return the parts that are named, each with its slot."""
        return {
            (each.slot, getattr(self, name))
            for name, field in type(self).model_fields.items()
            for each in field.metadata
            if isinstance(each, Choice) and catalog.has(each.slot, getattr(self, name))
        }

    def idle_groups(self) -> Collection[str]:
        """Return the options of parts that are not chosen."""
        used = {getattr(catalog.find(slot, name), "options", None) for slot, name in self.chosen_parts()}
        return {name for name, value in self if isinstance(value, Settings) and type(value) not in used}


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


Size = Annotated[int, BeforeValidator(parse_size)]  # bytes, as people write them: 500M, 1.5 GB, 300000
LEAST_MEMORY = 300_000_000


class TrainSettings(Settings):
    """Resources of every training run."""

    seed: int = Field(0, ge=0, lt=2**63, description="random seed")
    memory: Size = Field(
        0, ge=0, description="memory limit for all processes together, as in 500M; 0: no limit"
    )

    @field_validator("memory")
    @classmethod
    def _at_least(cls, memory: int) -> int:
        if 0 < memory < LEAST_MEMORY:
            raise ValueError(f"it must be at least {show_size(LEAST_MEMORY)}, or 0 for no limit")
        return memory


class SpreadSettings(TrainSettings):
    """Resources of a family whose counting can be distributed over a cluster."""

    engine: Literal["local", "spark"] = Field(
        "local", description="where counting runs: this machine or a Spark cluster (memory is then per task)"
    )
    master: str = Field(
        "",
        max_length=500,
        description="Spark's master, as in local[2] or spark://host:7077; empty: the one spark-submit sets",
    )
