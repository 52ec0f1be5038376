"""Runs that write together, drafts, and int8: from names and from runs in memory."""

from __future__ import annotations

import numpy as np
import pytest

import nextword
from nextword.core.errors import ConfigError

GREEDY = {"decode": "greedy", "max_tokens": 12}


@pytest.fixture(scope="module")
def names(corpus, tmp_path_factory):
    """A trigram, a bigram of the same tokenizer, one of another, and a small network, all saved."""
    folder = tmp_path_factory.mktemp("beside")
    train = {"model": "ngram", "tokenizer": "characters"}
    nextword.train(corpus, out=folder / "three", set={"model.order": 3}, **train)
    tokenizer = folder / "three" / "tokenizer.json"
    nextword.train(corpus, out=folder / "two", model="ngram", tokenizer=tokenizer, set={"model.order": 2})
    nextword.train(corpus, out=folder / "words", model="ngram", set={"model.order": 2})
    small = {"model.hidden": 16, "model.layers": 1, "model.context": 32, "train.steps": 3}
    small |= {"train.precision": "fp32"}
    nextword.train(corpus, out=folder / "net", model="transformer", tokenizer=tokenizer, set=small)
    return {name: folder / name for name in ("three", "two", "words", "net")}


@pytest.mark.parametrize("name", ["three", "net"])
def test_draft_changes_no_greedy_text(names, name):
    plain = nextword.generate(names[name], "the ", **GREEDY)
    assert nextword.generate(names[name], "the ", draft=names["two"], **GREEDY) == plain
    assert nextword.load(names[name]).generate("the ", draft=names["two"], **GREEDY) == plain


def test_runs_beside_each_other_average_their_probabilities(names):
    asked = {"decode": "greedy", "max_tokens": 1}
    together = nextword.generate(names["three"], "the ", beside=[names["two"]], **asked)
    runs = [nextword.load(names[name]) for name in ("three", "two")]
    tables = [dict(run.next("the ")) for run in runs]
    mean = {token: (tables[0][token] + tables[1][token]) / 2 for token in tables[0]}
    best = max(mean, key=mean.get)
    assert together.logprob == pytest.approx(np.log(mean[best]), abs=1e-6)


def test_int8_leaves_the_run_itself_as_it_was(names):
    run = nextword.load(names["net"])
    before = run.generate("the ", **GREEDY)
    rough = run.generate("the ", precision="int8", **GREEDY)
    assert rough.logprob == pytest.approx(before.logprob, abs=0.5)
    again = run.generate("the ", **GREEDY)
    assert (again, again.logprob) == (before, before.logprob)


def test_int8_costs_little_perplexity(names, corpus):
    exact, rough = (nextword.evaluate(names["net"], corpus, precision=kind) for kind in ("fp32", "int8"))
    assert rough.perplexity == pytest.approx(exact.perplexity, rel=0.02)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"draft": "words"}, "tokenizers of .* differ, so that the second cannot be a draft"),
        ({"beside": "words"}, "tokenizers of .* differ, so that the second cannot be another run"),
        ({"precision": "int4"}, "int4"),
    ],
)
def test_what_does_not_fit_is_refused(names, asked, sentence):
    asked = {key: names.get(value, value) for key, value in asked.items()}
    with pytest.raises(ConfigError, match=sentence):
        nextword.generate(names["three"], "the ", **asked)


def test_rare_settings_come_by_set(names):
    texts = nextword.generate(
        names["three"], decode="beam", n_best=4, set={"groups": 4, "patience": 2, "prefix": "a"}
    )
    assert all(text.startswith("a") for text in texts)
