"""`nextword data`: check and copy texts."""


def test_data_can_be_checked_and_copied(nextword, corpus, here):
    assert "sotu" in nextword("data", "list").out
    assert nextword("data", "check", corpus, "--json").json["lines"] == 36
    (here / "bad.txt").write_bytes(b"ok\ncaf\xe9\n")
    assert "bad.txt:2" in nextword("data", "check", "bad.txt").out
    assert "nowhere" in nextword("data", "get", "nowhere", "-o", "x").err


def test_pairs_are_made_of_other_shapes_and_some_kept_for_testing(nextword, here):
    (here / "dictionary.txt").write_text("".join(f"w{at} K AE T\n" for at in range(20)))
    done = nextword("data", "pairs", "letters", "dictionary.txt", "-o", "a.tsv", "--test", "b.tsv")
    assert done.out == "a.tsv: 18 pairs\nb.tsv: 2 pairs\n"
    assert (here / "b.tsv").read_text().startswith("w 9\tK AE T\n")
    refused = nextword("data", "pairs", "letter", "dictionary.txt", "-o", "a.tsv")
    assert refused.code == 1
    assert "did you mean 'letters'" in refused.err
