"""`nextword.filter` and `nextword.rescore` as functions."""

import nextword


def test_filter_and_rescore_are_functions_too(run, corpus, tmp_path):
    done = nextword.filter(run, corpus, tmp_path / "kept.txt", keep="head:50")
    assert done.kept == len((tmp_path / "kept.txt").read_text().rstrip("\n").split("\n"))
    (tmp_path / "n.tsv").write_text("u\t0\tbooks their opened\nu\t0\tthe students opened their books\n")
    ordered = nextword.rescore(run, tmp_path / "n.tsv", weights=[0, 1])
    assert ordered.lines[0].rstrip().endswith("the students opened their books")
