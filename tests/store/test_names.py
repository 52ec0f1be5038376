"""Names of runs: folders, names under runs/, the latest, and default names."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from run_folders import write

from nextword.core.errors import RunError
from nextword.store.manifest import MANIFEST
from nextword.store.names import default_name, latest, list_runs, mark_latest, resolve
from nextword.store.writing import new_run


def test_names_are_folders_or_live_under_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("runs/one"), 1)
    write(Path("elsewhere"), 2)
    assert resolve("one") == Path("runs/one")
    assert resolve("runs/one") == Path("runs/one")
    assert resolve("elsewhere") == Path("elsewhere")
    with pytest.raises(RunError, match=r"there is no run 'onne'.*did you mean 'one'\?"):
        resolve("onne")
    with pytest.raises(RunError, match="runs there: one"):
        resolve("zzzzzz")
    with pytest.raises(RunError, match="invalid run name"):
        resolve("")
    Path("model.arpa").write_text("")
    with pytest.raises(RunError, match=r"nextword import model\.arpa"):
        resolve("model.arpa")


def test_latest_is_the_last_one_written_even_if_the_clock_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="no run under 'runs' yet"):
        resolve("latest")
    write(Path("runs/a"), 1)
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 3600 * 10**9)
    write(Path("runs/b"), 2)
    assert resolve("latest") == Path("runs/b")
    Path("runs/.latest").unlink()  # the pointer is a convenience: the manifests know the order too
    assert latest() == Path("runs/b")
    Path("runs/.latest").write_text("gone\n")
    assert latest() == Path("runs/b")
    mark_latest("runs/a")
    assert latest() == Path("runs/a")
    assert [path.name for path in list_runs()] == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("corpus.txt", "ngram-corpus-1"),
        ("/data/My Book.TXT.gz", "ngram-my-book-1"),
        ("wikitext2/test", "ngram-test-1"),
        ("-", "ngram-text-1"),
        ("हिन्दी.txt", "ngram-text-1"),
        ("folder/", "ngram-folder-1"),
        (".txt", "ngram-txt-1"),
    ],
)
def test_default_names_come_from_model_and_data(tmp_path: Path, data: str, expected: str) -> None:
    assert default_name("ngram", data, tmp_path) == tmp_path / expected


def test_default_names_count_on(tmp_path: Path) -> None:
    for name in ("m-d-1", "m-d-9", "m-d-x", "m-other-12"):
        (tmp_path / name).mkdir()
    assert default_name("m", "d", tmp_path).name == "m-d-10"
    with new_run(tmp_path / "m-d-10") as folder:
        assert default_name("m", "d", tmp_path).name == "m-d-11"
        folder.write("a", b"")


def test_a_lost_pointer_to_the_latest_is_no_error(tmp_path: Path) -> None:
    mark_latest(tmp_path / "no" / "run")
    assert os.listdir(tmp_path) == []
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x" / MANIFEST).write_text("{}")
    with pytest.raises(RunError, match="no run under"):
        latest(tmp_path / "runs")
    assert default_name("m", "d", tmp_path / "none").name == "m-d-1"
