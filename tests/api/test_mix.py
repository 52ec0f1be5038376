"""Memories in runs: made by `mix`, tuned, saved, loaded, evaluated, generated from, explained."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nextword
from nextword.core.errors import ConfigError, DamagedError
from nextword.mixtures.members import Attached

pytest.importorskip("torch")

WORDS = ["the", "a", "cat", "dog", "bird", "sat", "ran", "saw", "on", "mat", "log", "tree", "red", "blue"]
STEPS = {
    "model.hidden": 16, "model.layers": 1, "train.steps": 40, "train.batch": 4, "train.length": 8,
    "train.threads": 1,
}  # fmt: skip


def _text(seed: int, lines: int) -> str:
    """Lines that come again some lines later: what a cache is good at."""
    rng = np.random.default_rng(seed)
    made: list[str] = []
    for _ in range(lines):
        again = made and rng.random() < 0.5
        line = made[-int(rng.integers(1, min(4, len(made)) + 1))] if again else " ".join(rng.choice(WORDS, 6))
        made.append(line)
    return "".join(line + "\n" for line in made)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts, and three runs with one tokenizer."""
    path = tmp_path_factory.mktemp("memories")
    for name, seed, lines in (("train", 1, 120), ("valid", 2, 60), ("test", 3, 60)):
        (path / f"{name}.txt").write_text(_text(seed, lines))
    data = path / "train.txt"
    nextword.train(data, model="ngram", set={"model.order": 3}, out=path / "counts")
    tokenizer = str(path / "counts")
    nextword.train(data, model="lstm", tokenizer=tokenizer, set=STEPS, out=path / "lstm")
    nextword.train(data, model="unbounded", tokenizer=tokenizer, out=path / "unbounded")
    return path


@pytest.fixture(scope="module")
def mixed(place: Path) -> nextword.Run:
    """An LSTM, counts, an unbounded n-gram, a cache and neighbours."""
    return nextword.mix(
        place / "lstm", place / "counts", place / "unbounded", tune=place / "valid.txt", out=place / "mixed",
        cache=40, neighbours=place / "train.txt", set={"neighbours.k": 8},
    )  # fmt: skip


def test_memories_help_on_a_text_that_repeats_itself(place, mixed):
    plain = nextword.mix(
        place / "lstm", place / "counts", place / "unbounded", tune=place / "valid.txt", out=place / "plain"
    )
    assert mixed.evaluate(place / "test.txt").nll < plain.evaluate(place / "test.txt").nll - 0.1
    assert plain.members == ("lstm", "counts", "unbounded")
    assert mixed.members == ("lstm", "counts", "unbounded", "cache", "neighbours")


def test_tuned_weights_give_the_figure_that_evaluation_gives(place, mixed):
    tuned = mixed.metrics[-1]["tune_nll"]
    assert mixed.evaluate(place / "valid.txt").nll == pytest.approx(tuned, abs=1e-4)


def test_a_run_with_memories_loads_again_with_equal_numbers_and_says_what_it_is(place, mixed, tmp_path):
    copy = mixed.save(tmp_path / "copy")
    text = (place / "test.txt").read_text()[:300]
    assert copy.score(text).nll == mixed.score(text).nll
    card = (tmp_path / "copy" / "README.md").read_text()
    assert "a neural cache of the last" in card
    assert "8 nearest neighbours" in card
    assert "`unbounded`, weight" in card
    assert copy.fingerprint == mixed.fingerprint


def test_a_run_with_memories_generates_and_compresses(place, mixed):
    assert mixed.generate("the cat", decode="beam", beam_size=3, max_tokens=6)
    data = (place / "test.txt").read_bytes()[:400]
    assert mixed.decompress(mixed.compress(data)) == data


def test_members_of_a_mixture_join_another_one_with_their_memories(place, mixed):
    first = nextword.mix(
        place / "lstm", tune=place / "valid.txt", cache=30, out=place / "one", set={"cache.theta": 0.01}
    )
    assert first.members == ("lstm", "cache")
    both = nextword.mix(place / "counts", first, tune=place / "valid.txt", out=place / "two")
    assert both.members == ("counts", "lstm", "cache")
    assert both.settings.model.of == (0, 0, 2)
    assert both.evaluate(place / "valid.txt").nll <= first.evaluate(place / "valid.txt").nll + 1e-6
    cache = both.model.members[2]
    assert isinstance(cache, Attached)
    assert cache.memory.theta == 0.01
    assert cache.memory.size <= 30


def test_counts_have_a_cache_of_words(place):
    made = nextword.mix(place / "counts", tune=place / "valid.txt", cache=40, out=place / "words")
    assert made.members == ("counts", "recent")
    plain = nextword.load(place / "counts").evaluate(place / "test.txt").nll
    assert made.evaluate(place / "test.txt").nll < plain - 0.05
    assert made.evaluate(place / "test.txt").signature.count("ctx:document") == 1


def test_evidence_tells_neighbours_and_cached_words(place, mixed):
    text = "the cat sat on the mat\nthe cat sat on the mat\n"
    found = mixed.evidence(text, top=2)
    assert sum(each.logprob for each in found) == pytest.approx(mixed.score(text).logprob, abs=1e-4)
    by_name = {said.name: said for said in found[9].said}
    assert by_name["cache"].seen[0].back == 7
    assert any(said.seen and said.seen[0].place is not None for each in found for said in each.said)
    json.dumps([each.to_json() for each in found])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cache": 0}, "'cache.size' is 0; it must be 1 or more"),
        ({"cache": 9, "set": {"cache.thetta": 1}}, "did you mean 'cache.theta'"),
        ({"set": {"cache.theta": 1.0}, "recent": 5}, "this memory is not part of the mixture; add 'cache'"),
        ({"neighbours": "nowhere.txt"}, "nowhere.txt"),
    ],
)
def test_wrong_memories_are_refused_in_one_sentence(place, given, message):
    with pytest.raises(nextword.NextwordError, match=message) as caught:
        nextword.mix(place / "lstm", tune=place / "valid.txt", out=place / "wrong", **given)
    assert "\n" not in str(caught.value)
    assert not (place / "wrong").exists()


def test_neighbours_need_a_network(place):
    with pytest.raises(ConfigError, match="none of the runs is one"):
        nextword.mix(
            place / "counts", tune=place / "valid.txt", neighbours=place / "train.txt", out=place / "wrong"
        )


@pytest.mark.needs("usearch")
def test_neighbours_may_be_found_by_an_index(place, tmp_path):
    near = {"neighbours.k": 8, "neighbours.temperature": 20.0}
    both = [
        nextword.mix(
            place / "lstm", tune=place / "valid.txt", neighbours=place / "train.txt",
            out=tmp_path / search, set={**near, "neighbours.search": search},
        )
        for search in ("exact", "approximate")
    ]  # fmt: skip
    assert (tmp_path / "approximate" / "part-2" / "index.usearch").exists()
    exact, approximate = (nextword.load(run.path).evaluate(place / "test.txt").nll for run in both)
    assert approximate == pytest.approx(exact, abs=0.05)


def test_damaged_keys_are_noticed(place, mixed, tmp_path):
    mixed.save(tmp_path / "run")
    keys = tmp_path / "run" / "part-5" / "keys.npy"
    keys.write_bytes(keys.read_bytes()[:-40])
    with pytest.raises(DamagedError, match=r"keys\.npy"):
        nextword.load(tmp_path / "run")


def test_dynamic_evaluation_is_an_option(place):
    run = nextword.load(place / "lstm")
    plain = run.evaluate(place / "test.txt")
    adapted = run.evaluate(
        place / "test.txt", dynamic="sgd", set={"dynamic.rate": 0.2, "dynamic.segment": 16}
    )
    assert adapted.nll < plain.nll
    assert "dynamic:sgd/0.2/" in adapted.signature
    gathered = nextword.evaluate(
        run, place / "test.txt", dynamic="rms",
        set={"dynamic.rate": 0.0, "dynamic.statistics": str(place / "train.txt")},
    )  # fmt: skip
    assert gathered.nll == pytest.approx(plain.nll, abs=1e-6)
    with pytest.raises(ConfigError, match='add dynamic="sgd"'):
        run.evaluate(place / "test.txt", set={"dynamic.rate": 0.2})
    with pytest.raises(ConfigError, match="has none"):
        nextword.evaluate(place / "counts", place / "test.txt", dynamic="sgd")
