"""`nextword presets`: what `--model` takes."""


def test_presets_are_listed_with_their_families(nextword):
    rows = {row["name"]: row["family"] for row in nextword("presets", "--json").json}
    assert rows["ngram-kneser-ney"] == "ngram"
    assert "ngram-kneser-ney" in nextword("presets").out
