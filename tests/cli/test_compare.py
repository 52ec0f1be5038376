"""`nextword compare`: a table, a report, and finished models are kept."""

import pytest

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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tokens", "100"), "--tokens is for --rows"),
        (("--rows", "narang"), "either --tokens N or --minutes M"),
        (("--rows", "narang", "--models", "lstm", "--minutes", "1"), "leave out --models and --task"),
        (("--rows", "narang", "--minutes", "1", "--tokenizer", "bpe,words"), "one tokenizer for all"),
        (("--rows", "narangg", "--minutes", "1"), "did you mean 'narang'"),
        (("--rows", "swiglu", "--minutes", "1", "--match", "size"), "unknown match 'size'"),
    ],
)
def test_a_bench_that_cannot_be_is_refused_before_anything_is_read(nextword, options, said):
    wrong = nextword("compare", "no-such-file.txt", *options)
    assert (wrong.code, said in wrong.err) == (1, True)
