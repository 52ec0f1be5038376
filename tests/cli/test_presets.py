"""`nextword presets`: what `--model` takes."""


def test_presets_are_listed_with_their_families(nextword):
    rows = {row["name"]: row["family"] for row in nextword("presets", "--json").json}
    assert rows["ngram-kneser-ney"] == "ngram"
    assert "ngram-kneser-ney" in nextword("presets").out


def test_models_of_other_tasks_are_named(nextword):
    assert "nextword list tagger" in nextword("presets").err
