"""`nextword import`: a run from an ARPA file."""


def test_imported_run_says_where_it_is_and_what_to_do_next(nextword, saved_run, here):
    assert nextword("export", saved_run, "--to", "arpa", "--out", "m.arpa").code == 0
    done = nextword("import", "m.arpa")
    assert done.out == "runs/ngram-m.arpa-1\n"
    assert "next: nextword score runs/ngram-m.arpa-1 -" in done.err
    again = nextword("import", "m.arpa", "--out", "runs/ngram-m.arpa-1")
    assert (again.code, "--overwrite" in again.err) == (1, True)
