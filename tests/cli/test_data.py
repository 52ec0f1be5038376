"""`nextword data`: check and copy texts."""


def test_data_can_be_checked_and_copied(nextword, corpus, here):
    assert "sotu" in nextword("data", "list").out
    assert nextword("data", "check", corpus, "--json").json["lines"] == 36
    (here / "bad.txt").write_bytes(b"ok\ncaf\xe9\n")
    assert "bad.txt:2" in nextword("data", "check", "bad.txt").out
    assert "nowhere" in nextword("data", "get", "nowhere", "-o", "x").err
