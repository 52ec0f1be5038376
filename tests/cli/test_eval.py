"""`nextword eval`: the numbers of a report."""

KEYS = {
    "tokens", "words", "bytes", "nll", "perplexity", "word_perplexity", "bits_per_byte", "unknown_rate",
    "seconds", "signature",
}  # fmt: skip


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


def test_dynamic_evaluation_of_counts_is_refused_in_one_sentence(nextword, corpus, saved_run):
    refused = nextword("eval", saved_run, corpus, "--dynamic", "sgd")
    assert refused.code == 1
    assert "this run has none; leave --dynamic out" in refused.err
    assert nextword("eval", saved_run, corpus, "--dynamic", "adam").code == 2
