"""The training state on disk: one file, or one file per rank and an index.

A sharded tensor is split by rows, in the order of the files; any number of ranks can read it again, each the
rows it needs. The format is safetensors and JSON: torch's own (DCP) contains a pickle.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from nextword.core.errors import DamagedError, NextwordError, RunError
from nextword.store.manifest import FileRecord
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun
from nextword.system.machine import serialized
from nextword.training.ranks import Engine
from nextword.training.state import TrainingState

STATE, INDEX = "state.safetensors", "shards.json"


def shard(rank: int, world: int) -> str:
    """Return the file name of a rank."""
    return f"state-{rank:05d}-of-{world:05d}.safetensors"


def part_of(state: TrainingState) -> tuple[dict[str, Tensor], dict[str, int]]:
    """Return the tensors that this rank writes, and how many rows it has of the sharded ones."""
    engine, tensors = state.engine, state.to_tensors()
    rows = {name: len(each) for name, each in tensors.items() if engine.is_sharded(name, each.ndim)}
    if not engine.ranks.is_first:
        tensors = {name: tensors[name] for name, count in rows.items() if count}
    return tensors, rows


def write_part(path: Path, state: TrainingState) -> dict[str, Any]:
    """Write this rank's file into the folder that rank 0 has made; return its record, or the error."""
    tensors, rows = part_of(state)
    name = shard(state.engine.ranks.rank, state.engine.ranks.world)
    folder = NewRun(path, path)
    try:
        folder.write(name, serialized(tensors))
    except (NextwordError, OSError, MemoryError) as error:
        return {"error": f"rank {state.engine.ranks.rank}: {error or 'out of memory'}"}
    record = folder.record(name)
    return {"file": name, "size": record.size, "sha256": record.sha256, "rows": rows}


def put_together(new: NewRun, reports: Sequence[dict[str, Any]]) -> None:
    """Add the files of all ranks to the manifest and write the index; called on rank 0."""
    for report in reports:
        if "error" in report:
            raise RunError(str(report["error"]))
        new.adopt(report["file"], FileRecord(report["size"], report["sha256"]))
    names = dict.fromkeys(name for report in reports for name in report["rows"])
    rows = {name: [report["rows"].get(name, 0) for report in reports] for name in names}
    new.write_json(INDEX, {"files": [report["file"] for report in reports], "rows": rows})


def read_state(folder: RunFolder, engine: Engine) -> dict[str, Tensor]:
    """Read the tensors of a checkpoint of any number of ranks, as far as this rank holds them."""
    index: dict[str, Any] = {"files": [STATE], "rows": {}}
    index = folder.read_json(INDEX) if INDEX in folder else index
    with ExitStack() as stack:
        files = [stack.enter_context(safe_open(folder.file(name), "pt")) for name in index["files"]]
        holders: dict[str, list[Any]] = {}
        for file in files:
            for name in file.keys():  # noqa: SIM118 - not a dict
                holders.setdefault(name, []).append(file)
        found = {name: _rows(name, some, engine) for name, some in holders.items()}
        for name, counts in index["rows"].items():
            if sum(counts) != sum(file.get_slice(name).get_shape()[0] for file in holders.get(name, [])):
                raise DamagedError(
                    f"rows of '{name}' are missing in '{folder.path}'; start over with --overwrite"
                )
    return found


def _rows(name: str, files: Sequence[Any], engine: Engine) -> Tensor:
    """Read this rank's rows of a tensor from one file or several."""
    slices = [file.get_slice(name) for file in files]
    shape = slices[0].get_shape()
    if not shape or (len(files) == 1 and not engine.is_sharded(name, len(shape))):
        whole: Tensor = files[0].get_tensor(name)
        return whole
    counts = [each.get_shape()[0] for each in slices]
    total = sum(counts)
    wanted = engine.rows(name, total) if engine.is_sharded(name, len(shape)) else slice(0, total)
    pieces, begin = [], 0
    for each, count in zip(slices, counts, strict=True):
        first, last = max(wanted.start - begin, 0), min(wanted.stop - begin, count)
        if first < last:
            pieces.append(each[first:last])
        begin += count
    return torch.cat(pieces) if pieces else slices[0][0:0]
