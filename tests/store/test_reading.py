"""Runs that are read: damage is named, whatever it is, and small files are checked at once."""

from __future__ import annotations

import errno
import json
import random
from pathlib import Path

import pytest
from run_folders import fail_with, write

from nextword.core.errors import DamagedError, RunError
from nextword.store.manifest import LARGE, MANIFEST
from nextword.store.reading import RunFolder, open_run
from nextword.store.writing import new_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    write(path, 7, size=LARGE + 5)
    return path


@pytest.mark.parametrize("name", ["config.toml", "training.json", "array.npy", MANIFEST])
def test_a_flipped_bit_is_named(run: Path, name: str) -> None:
    generator = random.Random(name)
    data = bytearray((run / name).read_bytes())
    data[generator.randrange(len(data))] ^= 1 << generator.randrange(7)
    (run / name).write_bytes(data)
    with pytest.raises(DamagedError, match=name):
        open_run(run, verify=True)


def test_opening_hashes_a_large_network(tmp_path: Path) -> None:
    with new_run(tmp_path / "run") as folder:
        folder.write("model.safetensors", bytes(2 * LARGE))
    path = tmp_path / "run" / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[LARGE + 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedError, match=r"model\.safetensors was changed after it was written"):
        open_run(tmp_path / "run")


def test_opening_leaves_large_mapped_arrays_unread(run: Path) -> None:
    data = bytearray((run / "array.npy").read_bytes())
    data[-1] ^= 1
    (run / "array.npy").write_bytes(data)
    folder = open_run(run)  # sizes are right, large files are checked on request
    with pytest.raises(DamagedError, match=r"array\.npy was changed after it was written"):
        folder.verify()


@pytest.mark.parametrize("name", ["config.toml", "training.json", "array.npy", MANIFEST])
@pytest.mark.parametrize("how", ["truncate", "empty", "delete", "longer", "folder", "link"])
def test_every_kind_of_damage_is_an_error_that_names_the_file(run: Path, name: str, how: str) -> None:
    path, data = run / name, (run / name).read_bytes()
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "link":
        (run.parent / "elsewhere").write_bytes(data)
        path.symlink_to("../elsewhere")
    elif how != "delete":
        path.write_bytes({"truncate": data[:-1], "empty": b"", "longer": data + b"x"}[how])
    with pytest.raises(RunError, match=name):
        open_run(run)


@pytest.mark.parametrize(
    "change",
    [
        {"nextword_format": 99},
        {"nextword_format": "1"},
        {"files": {"../../etc/passwd": {"size": 1, "sha256": "0" * 64}}},
        {"files": {"a": {"size": -1, "sha256": "0" * 64}}},
        {"files": []},
        {"created": "now"},
        {"check": 5},
    ],
)
def test_a_forged_manifest_is_refused(run: Path, change: dict[str, object]) -> None:
    from nextword.store.manifest import _check

    body = json.loads((run / MANIFEST).read_bytes()) | change
    if "check" not in change:
        body["check"] = _check(body)
    (run / MANIFEST).write_text(json.dumps(body))
    with pytest.raises(DamagedError, match=MANIFEST):
        open_run(run)


def test_random_bytes_as_manifest_raise_only_our_error(run: Path) -> None:
    original = (run / MANIFEST).read_bytes()
    generator = random.Random(5)
    for _ in range(300):
        data = bytearray(original)
        for _ in range(generator.randrange(1, 4)):
            start = generator.randrange(len(data))
            data[start : start + generator.randrange(0, 3)] = generator.randbytes(generator.randrange(0, 3))
        (run / MANIFEST).write_bytes(data)
        if bytes(data) == original:
            continue
        with pytest.raises(RunError, match=MANIFEST):
            open_run(run)


def test_missing_runs_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no run"):
        open_run(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is a file"):
        open_run(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DamagedError, match="not a complete run"):
        open_run(tmp_path / "folder")


def test_unlisted_and_garbled_files_are_named(run: Path) -> None:
    folder = open_run(run)
    with pytest.raises(DamagedError, match=r"has no file 'x\.npy'"):
        folder.file("x.npy")
    with pytest.raises(DamagedError, match="is not valid JSON"):
        folder.read_json("config.toml")
    (run / "config.toml").write_text("version = 8\n")
    with pytest.raises(DamagedError, match="was changed"):
        folder.read("config.toml")


def test_a_run_replaced_while_it_is_read_is_noticed(run: Path) -> None:
    folder = open_run(run)
    folder.ensure_unchanged()
    write(run, 8, overwrite=True)
    with pytest.raises(RunError, match="was replaced by another process"):
        folder.ensure_unchanged()


def test_folder_objects_know_their_manifest(tmp_path: Path) -> None:
    write(tmp_path / "run", 1, size=LARGE)
    folder = open_run(tmp_path / "run")
    assert isinstance(folder, RunFolder)
    assert [name for name, record in folder.manifest.files.items() if record.large] == ["array.npy"]
    assert json.loads((tmp_path / "run" / MANIFEST).read_bytes())["files"]["array.npy"]["large"] is True


def test_huge_manifests_and_files_that_cannot_be_read_are_named(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = open_run(run)
    monkeypatch.setattr(Path, "read_bytes", fail_with(errno.EACCES))
    for call in (lambda: folder.read("config.toml"), lambda: open_run(run)):
        with pytest.raises(RunError, match="cannot be read \\(Permission denied\\)"):
            call()
    monkeypatch.undo()
    monkeypatch.setattr("nextword.store.manifest._MAX_MANIFEST", 10)
    with pytest.raises(DamagedError, match="has more than 10 bytes"):
        open_run(run)


def test_text_that_is_no_text_is_named(tmp_path: Path) -> None:
    with new_run(tmp_path / "run") as folder:
        folder.write("config.toml", b"\xff")
    with pytest.raises(DamagedError, match=r"config\.toml is not UTF-8"):
        open_run(tmp_path / "run").read_text("config.toml")
