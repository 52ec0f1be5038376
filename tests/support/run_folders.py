"""Small run folders that carry a version, small checkpoints, and calls of the system that fail."""

from __future__ import annotations

import os
from pathlib import Path

from nextword.store.checkpoints import Checkpoints
from nextword.store.reading import open_run
from nextword.store.writing import new_run


def write(path: Path, version: int = 1, overwrite: bool = False, size: int = 100) -> None:
    """Write a run whose files all tell its version."""
    with new_run(path, overwrite=overwrite) as folder:
        folder.write("config.toml", f"version = {version}\n")
        folder.write_json("training.json", {"version": version})
        folder.later("array.npy", bytes([version % 256]) * size)


def write_half(path: Path, overwrite: bool = False) -> None:
    """Fail in the middle of writing a run."""
    with new_run(path, overwrite=overwrite) as folder:
        folder.later("array.npy", bytes(1000))
        folder.write("config.toml", "half")
        raise KeyError("stop")


def version_of(path: Path) -> int:
    """Read the version of a run; every file must tell the same."""
    folder = open_run(path, verify=True)
    version: int = folder.read_json("training.json")["version"]
    assert folder.read_text("config.toml") == f"version = {version}\n"
    assert set(folder.read("array.npy")) == {version % 256}
    return version


def hidden(folder: Path) -> list[str]:
    """List what a writer keeps beside its run."""
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


def save(run: Path, step: int, training: str = "00000001") -> None:
    """Save a checkpoint of two files."""
    with Checkpoints(run, training).writing(step, 100) as new:
        new.write("state.bin", bytes([step % 256]) * 50)
        new.write("numbers.json", f'{{"step": {step}}}')


def fail_with(code: int) -> object:
    """Give a call that fails with an error of the system."""

    def call(*args: object, **options: object) -> None:
        raise OSError(code, os.strerror(code))

    return call
