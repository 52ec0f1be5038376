"""N-best lists of a speech recognizer or translator: read, and written back in a new order.

Three formats, recognized by the first line: Kaldi (``utt-1 score text``), JSONL (id, score, text) and TSV
(id, one or more scores, text). A score is a number where higher is better; a cost gets a negative weight.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nextword.core.errors import DataError

Format = Literal["kaldi", "jsonl", "tsv"]
Floats = npt.NDArray[np.float64]

_RANK = re.compile(r"(.+)-(\d+)")


@dataclass(frozen=True)
class NBest:
    """All hypotheses of a list, grouped by utterance."""

    format: Format
    ids: list[str]  # as they stand in the file
    texts: list[str]
    scores: Floats  # N x S: the scores given
    groups: list[str]  # the utterances
    starts: npt.NDArray[np.int64]  # where each utterance begins
    lines: list[int]  # line numbers, for messages
    extra: list[dict[str, Any]] = field(default_factory=list)  # JSONL: all fields

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class _Place:
    """A line of a file, for messages."""

    source: str
    line: int

    def error(self, message: str) -> DataError:
        return DataError(message, self.source or None, self.line)


@dataclass(frozen=True)
class _Entry:
    id: str
    scores: tuple[float, ...]
    text: str
    line: int
    extra: dict[str, Any]


def read_nbest(lines: Iterable[bytes], source: str = "") -> NBest:
    """Read a list; a mistake in it is a DataError with file and line."""
    kind: Format | None = None
    entries: list[_Entry] = []
    for number, raw in enumerate(lines, start=1):
        place = _Place(source, number)
        text = _decoded(raw, place)
        if not text.strip():
            continue
        kind = kind or _format_of(text)
        entry = _READERS[kind](text, place)
        if entries and len(entry.scores) != len(entries[0].scores):
            raise place.error(
                f"{len(entry.scores)} scores here, {len(entries[0].scores)} in line {entries[0].line}; "
                "give every hypothesis the same number of scores"
            )
        entries.append(entry)
    if kind is None:
        raise DataError("the n-best list is empty; give lines of id, score and text", source or None)
    return _grouped(kind, entries)


def read_references(lines: Iterable[bytes], source: str = "") -> dict[str, str]:
    """Read the reference texts: ``id text`` (Kaldi, or with a tab) or JSONL with id and text."""
    found: dict[str, str] = {}
    for number, raw in enumerate(lines, start=1):
        place = _Place(source, number)
        line = _decoded(raw, place)
        if not line.strip():
            continue
        if line.lstrip().startswith("{"):
            values = _json(line, place)
            key, text = str(_needed(values, "id", place)), str(_needed(values, "text", place))
        else:
            key, _, text = line.strip().partition("\t" if "\t" in line else " ")
        if key in found:
            raise place.error(f"the id '{key}' has a reference already; each id may come once")
        found[key] = text
    if not found:
        raise DataError("there are no references in it; give lines of id and text", source or None)
    return found


def write_nbest(nbest: NBest, order: Sequence[int], lm: Floats, total: Floats) -> Iterator[str]:
    """Yield the hypotheses in a new order, best first within each utterance, in the format they came in.

    Kaldi and TSV get the combined score in place of the given ones; JSONL keeps its fields and gets `lm`
    (log p by the model) and `combined`.
    """
    for i in order:
        if nbest.format == "jsonl":
            numbers = {"lm": _finite(lm[i]), "combined": _finite(total[i])}
            yield json.dumps({**nbest.extra[i], **numbers}, ensure_ascii=False, allow_nan=False)
        else:
            between = "\t" if nbest.format == "tsv" else " "
            yield between.join((nbest.ids[i], f"{total[i]:.6f}", nbest.texts[i]))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _decoded(raw: bytes, place: _Place) -> str:
    try:
        return raw.rstrip(b"\r\n").decode("utf-8")
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        raise place.error(f"the byte 0x{byte:02X} is not UTF-8; convert the file to UTF-8") from error


def _format_of(line: str) -> Format:
    return "jsonl" if line.lstrip().startswith("{") else "tsv" if "\t" in line else "kaldi"


def _read_kaldi(line: str, place: _Place) -> _Entry:
    key, _, rest = line.strip().partition(" ")
    score, _, text = rest.strip().partition(" ")
    if not score:
        raise place.error("this line has no score; a line is 'utt-1 score text'")
    return _Entry(key, (_number(score, place),), text.strip(), place.line, {})


def _read_tsv(line: str, place: _Place) -> _Entry:
    fields = line.split("\t")
    if len(fields) < 3:
        raise place.error(f"this line has {len(fields)} fields, at least 3 are needed: id, score, text")
    scores = tuple(_number(value, place) for value in fields[1:-1])
    return _Entry(fields[0], scores, fields[-1], place.line, {})


def _read_jsonl(line: str, place: _Place) -> _Entry:
    values = _json(line, place)
    given = _needed(values, "score", place)
    scores = given if isinstance(given, list) else [given]
    if not scores or not all(isinstance(score, int | float) and math.isfinite(score) for score in scores):
        raise place.error(f"'score' is {given!r}; it must be a number or a list of numbers")
    text = _needed(values, "text", place)
    if not isinstance(text, str) or "\n" in text or not _is_text(text):
        raise place.error("'text' must be one line of text")
    return _Entry(str(_needed(values, "id", place)), tuple(map(float, scores)), text, place.line, values)


def _is_text(text: str) -> bool:
    """Tell whether a string is text: JSON can hold a lone surrogate, which is not a character."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


_READERS: dict[Format, Callable[[str, _Place], _Entry]] = {
    "kaldi": _read_kaldi,
    "tsv": _read_tsv,
    "jsonl": _read_jsonl,
}


def _json(line: str, place: _Place) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise place.error(f"this line is not JSON ({error})") from error
    if not isinstance(values, dict):
        raise place.error("this line is not a JSON object with id, score and text")
    return values


def _needed(values: dict[str, Any], name: str, place: _Place) -> Any:
    if name not in values:
        raise place.error(f"'{name}' is missing; a line has id, score and text")
    return values[name]


def _number(text: str, place: _Place) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise place.error(f"the score is '{text}', which is not a finite number")
    return value


def _grouped(kind: Format, entries: list[_Entry]) -> NBest:
    """Group hypotheses by utterance, utterances in the order of their first one."""
    ids = [entry.id for entry in entries]
    ranked = kind == "kaldi" or len(set(ids)) == len(ids)  # utt-1, utt-2, …: the rank is not part of the name
    matches = [_RANK.fullmatch(key) for key in ids] if ranked else [None] * len(ids)
    strip = ranked and all(matches)
    names = [match[1] if strip and match else key for match, key in zip(matches, ids, strict=True)]
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    order = sorted(range(len(entries)), key=lambda i: place[names[i]])
    entries = [entries[i] for i in order]
    group = np.array([place[names[i]] for i in order])
    return NBest(
        kind,
        [entry.id for entry in entries],
        [entry.text for entry in entries],
        np.array([entry.scores for entry in entries], dtype=np.float64).reshape(len(entries), -1),
        list(place),
        np.flatnonzero(np.diff(group, prepend=-1)).astype(np.int64),
        [entry.line for entry in entries],
        [entry.extra for entry in entries],
    )
