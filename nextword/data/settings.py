"""How data is read: the settings of the group ``data``.

A wrong value is reported here, before any file is opened.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nextword.core.settings import Settings

Format = Literal["auto", "text", "jsonl", "csv", "tsv", "parquet"]


class DataSettings(Settings):
    """Format, columns, the unit of a sequence, and how to treat invalid bytes."""

    unit: Literal["auto", "line", "document"] = Field(
        "auto",
        description="unit of a sequence; auto: the tokenizer's default (words: line, others: document)",
    )
    format: Format = Field("auto", description="file format; auto: by the file's extension")
    delimiter: Literal["auto", "comma", "semicolon", "tab"] = Field(
        "auto", description="what separates the columns of CSV and TSV; auto: by the header and the rows"
    )
    text_column: str = Field(
        "", description="column or JSON field with the text (name or number); several: title,body"
    )
    columns: str = Field(
        "", description="names of the columns of a table without a header line: id,topics,title,body"
    )
    on_error: Literal["stop", "skip", "replace"] = Field(
        "stop", description="bytes that are not UTF-8: stop, skip the line, or replace them (counted, noted)"
    )
    newlines: Literal["unify", "keep"] = Field(
        "unify", description="unify: CRLF becomes LF in training text; evaluation always keeps the bytes"
    )
    direction: Literal["forward", "backward"] = Field(
        "forward", description="backward: each sequence is read from its end, for models that look ahead"
    )
    hold_out: float = Field(
        0.05, ge=0.0, le=0.5, description="share of the text held out for validation; for counts, only if set"
    )
