"""Tables as `score` and `filter` read and write them: which column is the text, and what is written where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any, cast

from nextword.api.opened import Opened
from nextword.core import config
from nextword.core.errors import ConfigError
from nextword.data.paths import Source
from nextword.data.rows import Table
from nextword.data.settings import DataSettings


def table_settings(run: Opened, sets: Mapping[str, Any]) -> DataSettings:
    """Return how a table is read: the run's own columns, unless ``sets`` names others; any format."""
    given = {key: value for key, value in sets.items() if key.startswith("data.")}
    asked = cast(DataSettings, config.build({"data": DataSettings}, given)["data"])
    data = run.settings.data
    own = {"text_column": data.text_column, "columns": data.columns}
    return DataSettings(**(own | asked.model_dump(exclude_unset=True)))


def check_output(table: Table, out: str | IO[bytes] | None) -> None:
    """Raise an error unless the rows of the table can be written there: they keep their format."""
    if not isinstance(out, str):
        if table.kind == "parquet":
            raise ConfigError("a Parquet table cannot be written to standard output; give --out FILE.parquet")
        return
    kind = Source(out).format
    if kind not in (table.kind, "text") or out.lower().endswith(".gz"):
        raise ConfigError(
            f"--out is '{out}', but the rows of {table.source.shown} are written in its own format; choose a "
            f"name that ends in .{table.kind}"
        )
