"""`nextword eval`: the numbers of a report, and its page."""

from labelled_texts import labelled_texts

from nextword.api.eval import page_of

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


def test_a_page_has_the_pictures_of_a_classifier(nextword, here):
    (here / "t.tsv").write_text(labelled_texts(120))
    sets = ("--set", "model.hidden=8", "--set", "train.steps=2", "--set", "train.threads=1")
    assert nextword("train", "t.tsv", "--task", "classify", "--model", "lstm", "--out", "m", *sets).code == 0
    done = nextword("eval", "m", "t.tsv", "--html", "page.html")
    assert done.code == 0
    assert done.out == nextword("eval", "m", "t.tsv").out  # the numbers are printed as without a page
    assert "written: page.html" in done.err
    page = (here / "page.html").read_text()
    for title in ("Confusion matrix", "F1 of each label", "Reliability diagram", "ROC"):
        assert f"<h2>{title}</h2>" in page
    assert "Measured: lstm on t.tsv" in page


def test_a_page_of_a_language_model_has_its_numbers(nextword, corpus, saved_run, here):
    done = nextword("eval", saved_run, corpus, "--html", "page.html", "--json")
    assert done.json["tokens"] == 36 * 8
    assert f">{done.json['tokens']:,}</td>" in (here / "page.html").read_text()


def test_a_page_needs_a_name_that_ends_in_html(nextword, corpus, saved_run, here):
    refused = nextword("eval", saved_run, corpus, "--html", "page.pdf")
    assert refused.code == 1
    assert "'--html' is 'page.pdf', which is not a page; it must end in .html" in refused.err
    assert not (here / "page.pdf").exists()


def test_the_report_of_any_task_has_a_page():
    class Bare:
        def to_json(self):
            return {"exact": 0.25, "parts": [1, 2]}

    page = page_of(Bare()).html()
    assert "exact" in page
    assert "0.25" in page
    assert "parts" not in page


def test_only_translation_runs_are_compared_by_a_bootstrap(nextword, corpus, saved_run):
    refused = nextword("eval", saved_run, corpus, "--against", saved_run)
    assert refused.code == 1
    assert "one of these has the task 'lm'; compare other models with: nextword compare" in refused.err
