"""`nextword compare`: a table, a report, and finished models are kept."""


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
