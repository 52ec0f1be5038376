"""`nextword mix`: runs and memories interpolated."""

import pytest


def test_mix_tunes_weights_and_stands_alone(nextword, corpus, saved_run, here):
    assert nextword("train", corpus, "--model", "ngram-add", "--tokenizer", saved_run, "--out", "b").code == 0
    done = nextword("mix", saved_run, "b", "--tune", corpus, "--out", "m", "--json")
    assert sum(done.json["weights"]) == pytest.approx(1)
    best = min(nextword("eval", run, corpus, "--json").json["nll"] for run in (saved_run, "b"))
    assert nextword("eval", "m", corpus, "--json").json["nll"] <= best + 1e-6
    (here / "b").rename(here / "elsewhere")
    assert nextword("eval", "m", corpus, "--json").code == 0


def test_mix_of_two_vocabularies_is_refused(nextword, saved_run, here):
    (here / "t.txt").write_text("another text with other words\n")
    assert nextword("train", "t.txt", "--model", "ngram", "--out", "b").code == 0
    refused = nextword("mix", saved_run, "b", "--tune", "t.txt", "--out", "m")
    assert refused.code == 1
    assert "differ; train the second run with" in refused.err
    assert not (here / "m").exists()


def test_counts_with_a_cache_are_a_run_like_any_other(nextword, corpus, saved_run, here):
    made = nextword("mix", saved_run, "--cache", 20, "--tune", corpus, "--out", "m", "--json")
    assert made.code == 0, made.err
    assert len(made.json["weights"]) == 2
    assert "the cache is one of recent words" in made.err
    assert "held-out perplexity: animals" in made.err
    before = nextword("eval", saved_run, corpus, "--json").json["nll"]
    assert nextword("eval", "m", corpus, "--json").json["nll"] <= before + 1e-6
    assert "a cache of the last" in (here / "m" / "README.md").read_text()
    assert nextword("generate", "m", "--prompt", "the", "--seed", 1).code == 0


def test_settings_of_a_memory_are_not_tried_if_they_are_set(nextword, corpus, saved_run, here):
    sets = ("--set", "recent.decay=0.5", "--set", "recent.size=3")
    assert nextword("mix", saved_run, "--recent", 20, *sets, "--tune", corpus, "--out", "m").code == 0
    config = (here / "m" / "part-2" / "config.toml").read_text()
    assert "decay = 0.5" in config
    assert "size = 3" in config


def test_a_memory_that_does_not_exist_is_told(nextword, corpus, saved_run, here):
    refused = nextword("mix", saved_run, "--cache", -3, "--tune", corpus, "--out", "m")
    assert refused.code == 1
    assert "'cache.size' is -3; it must be 1 or more" in refused.err
    refused = nextword("mix", saved_run, "--recent", 5, "--set", "recent.decai=1", "--tune", corpus)
    assert (refused.code, "did you mean 'recent.decay'" in refused.err) == (1, True)
