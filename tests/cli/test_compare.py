"""`nextword compare`: a table, a report, and finished models are kept."""

from nextword.comparison import runner


def test_compare_prints_a_table_writes_a_report_and_resumes(nextword, corpus, here):
    done = nextword("compare", corpus, "--models", "ngram-add,ngram", "--set", "model.order=2", "--out", "c")
    assert done.code == 0
    assert "bits per byte" in done.out
    assert (here / "c" / "report.html").is_file()
    again = nextword(
        "compare", corpus, "--models", "ngram-add,ngram", "--set", "model.order=2", "--out", "c", "--json"
    )
    assert again.err.count("is already finished") == 2
    assert {row["model"] for row in again.json["models"]} == {"ngram-add", "ngram"}
    wrong = nextword("compare", corpus, "--models", "ngram,ngrm")
    assert (wrong.code, "unknown model 'ngrm'" in wrong.err) == (1, True)


def test_interrupted_comparison_says_what_is_kept(nextword, corpus, here, monkeypatch):
    options = ("compare", corpus, "--models", "ngram-laplace,ngram-mle", "--out", "both")
    measured, seen = runner.measured, []

    def interrupted(setup, trained, row):
        seen.append(row.model)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return measured(setup, trained, row)

    monkeypatch.setattr(runner, "measured", interrupted)
    stopped = nextword(*options)
    assert stopped.code == 130
    assert "models that are finished stay in both, and the same command continues" in stopped.err
    assert "is already finished" in nextword(*options).err
