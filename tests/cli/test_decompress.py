"""`nextword decompress`: only with the run that compressed."""


def test_compressed_file_is_refused_by_another_run(nextword, corpus, saved_run, here):
    (here / "f").write_text("the cat sat\n")
    assert nextword("train", corpus, "--model", "ngram", "--set", "model.order=2", "--out", "b").code == 0
    assert nextword("compress", "b", "f", "-o", "z").code == 0
    refused = nextword("decompress", saved_run, "z", "-o", "back")
    assert refused.code == 1
    assert "compressed with the run" in refused.err
    assert not (here / "back").exists()
