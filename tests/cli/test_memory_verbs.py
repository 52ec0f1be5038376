"""Memories on the command line: mix with a cache, score with evidence, dynamic evaluation."""

import json


def test_counts_with_a_cache_are_a_run_like_any_other(nextword, corpus, saved_run, here):
    made = nextword("mix", saved_run, "--cache", 20, "--tune", corpus, "--out", "m", "--json")
    assert made.code == 0, made.err
    assert len(made.json["weights"]) == 2
    assert "the cache remembers words alone" in made.err
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


def test_evidence_is_a_row_a_token_and_adds_up(nextword, corpus, saved_run, here):
    sets = ("--set", "recent.decay=0.9", "--set", "recent.size=20")
    assert nextword("mix", saved_run, "--recent", 20, *sets, "--tune", corpus, "--out", "m").code == 0
    (here / "t.txt").write_text("the cat sat\nthe cat sang\n")
    rows = [line.split("\t") for line in nextword("score", "m", "t.txt", "--evidence").out.splitlines()]
    assert [row[3] for row in rows] == ["the", "cat", "sat", "</s>", "the", "cat", "sang", "</s>"]
    assert [row[:2] for row in rows[3:6]] == [["1", "4"], ["2", "1"], ["2", "2"]]
    assert "'the' 4 words ago" in rows[5][4]
    plain = nextword("score", "m", "t.txt", "--evidence", "--format", "jsonl").out.splitlines()
    found = [json.loads(line) for line in plain]
    assert all(abs(sum(s["share"] for s in each["said"]) - each["probability"]) < 1e-9 for each in found)


def test_dynamic_evaluation_of_counts_is_refused_in_one_sentence(nextword, corpus, saved_run):
    refused = nextword("eval", saved_run, corpus, "--dynamic", "sgd")
    assert refused.code == 1
    assert "this run has none; leave --dynamic out" in refused.err
    assert nextword("eval", saved_run, corpus, "--dynamic", "adam").code == 2


def test_a_memory_that_does_not_exist_is_told(nextword, corpus, saved_run, here):
    refused = nextword("mix", saved_run, "--cache", -3, "--tune", corpus, "--out", "m")
    assert refused.code == 1
    assert "'cache.size' is -3; it must be 1 or more" in refused.err
    refused = nextword("mix", saved_run, "--recent", 5, "--set", "recent.decai=1", "--tune", corpus)
    assert (refused.code, "did you mean 'recent.decay'" in refused.err) == (1, True)
