"""Probes of a bench: columns that a finished bench gets later, from files of their own."""

from __future__ import annotations

import pytest
from benches import quick, setup_of
from comparisons import write
from event_streams import notes_of, until_done

from nextword.comparison.bench import bench as story
from nextword.comparison.bench import probes as asking
from nextword.comparison.bench.bench import bench
from nextword.core.errors import ConfigError, DataError

PAIRS = "uid\tfield\tterm\tpair\tgood\tbad\n" + "".join(
    f"a\tsyntax\tb\t{at}\tthe cat {word}s\tthe cat {word}\n" for at, word in enumerate(("run", "see", "eat"))
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probed")
    write(folder / "text.txt", 300)
    (folder / "pairs.tsv").write_text(PAIRS)
    with pytest.MonkeyPatch.context() as patch:
        quick(patch)
        until_done(bench(setup_of(folder, "elu", tokens=300)))
        yield folder


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(asking, "STEPS", 4)
    monkeypatch.setattr(asking, "LINES", 40)


def test_a_finished_bench_gets_columns_and_keeps_its_rows(folder, monkeypatch):
    monkeypatch.setattr(story, "train", None)  # no row may be trained again
    rows = {path.name: path.read_text() for path in (folder / "out" / "rows").iterdir()}
    asked = ["dyck", str(folder / "pairs.tsv")]
    found, _ = until_done(bench(setup_of(folder, "elu", tokens=300, probes=asked)))
    shown = found.standing.table()
    assert {"dyck, % (chance 50)", "pairs, % (chance 50)"} <= set(shown.columns)
    assert {path.name: path.read_text() for path in (folder / "out" / "rows").iterdir()} == rows
    assert found.to_json()["probes"]["pairs"]["narang-elu"]["count"] == 3
    monkeypatch.setattr(asking, "learn", None)  # what is there is not made again
    again, _ = until_done(bench(setup_of(folder, "elu", tokens=300, probes=asked)))
    assert again.standing.table() == shown


def test_minimal_pairs_need_the_trained_model(folder):
    moved = (folder / "out" / "runs" / "narang-elu").rename(folder / "elsewhere")
    other = folder / "other.tsv"
    other.write_text(PAIRS + "a\tsyntax\tb\t3\tit is\tit are\n")
    found, events = until_done(bench(setup_of(folder, "elu", tokens=300, probes=[str(other)])))
    moved.rename(folder / "out" / "runs" / "narang-elu")
    assert any("its model is not in" in note for note in notes_of(events))
    table = found.standing.table()
    at = next(place for place, name in enumerate(table.columns) if name.startswith("other"))
    cells = {row[0]: row[at] for row in table.rows}
    assert cells["ELU"] == "-"
    assert cells["Vanilla"] != "-"


def test_what_is_no_probe_is_refused_before_any_training(folder):
    with pytest.raises(ConfigError, match=r"unknown probe 'dick'.*did you mean 'dyck'"):
        setup_of(folder, "elu", probes=["dick"])
    with pytest.raises(DataError, match="cannot be read as minimal pairs"):
        setup_of(folder, "elu", probes=[str(folder / "text.txt")])
