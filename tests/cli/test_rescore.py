"""`nextword rescore`: n-best lists in a new order."""


def test_rescore_puts_the_likelier_text_first(nextword, saved_run, here):
    (here / "n.tsv").write_text("u1\t0\tthe mat sat on cat .\nu1\t0\tthe cat sat on the mat .\n")
    (here / "r.txt").write_text("u1 the cat sat on the mat .\n")
    done = nextword("rescore", saved_run, "n.tsv", "--weights", "0,1")
    assert done.out.split("\n")[0].endswith("the cat sat on the mat .")
    assert nextword("rescore", saved_run, "n.tsv", "--tune", "r.txt", "--json").json["tuned"]["after"] == 0
    assert nextword("rescore", saved_run, "n.tsv", "--weights", "x").code == 1
