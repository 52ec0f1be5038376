"""`nextword list`: the catalog."""


def test_catalog_can_be_listed(nextword):
    names = [row["name"] for row in nextword("list", "smoothing", "--json").json]
    assert names[:2] == ["mle", "add"]
    assert {"model", "tokenizer"} <= {row["name"] for row in nextword("list", "--json").json}


def test_unknown_slot_is_named(nextword):
    done = nextword("list", "smothing")
    assert done.code == 1
    assert "did you mean 'smoothing'?" in done.err
    assert "did you mean 'modifications'?" in nextword("list", "modification").err


def test_settings_of_a_model_are_listed_with_the_parts_they_may_name(nextword):
    rows = {row["name"]: row for row in nextword("list", "lstm", "--json").json}
    assert rows["model.head"]["allowed"] == "softmax, adaptive, softmaxes, sphere"
    assert rows["model.layers"]["description"]
    assert rows["train.optimizer"]["default"] == '"adamw"'
    assert "model.smoothing" in nextword("list", "ngram").out


def test_slot_is_listed_with_descriptions_and_where_they_come_from(nextword):
    row = next(row for row in nextword("list", "model", "--json").json if row["name"] == "lstm")
    assert (set(row), row["from"]) == ({"name", "description", "from"}, "built in")
    assert "nextword." not in nextword("list", "cell").out


def test_every_tagger_and_classifier_has_a_line_of_its_own(nextword):
    for slot in ("tagger", "classifier"):
        rows = nextword("list", slot, "--json").json
        lines = [row["description"] for row in rows]
        assert len(set(lines)) == len(lines) > 5


def test_costs_of_modifications_stand_before_what_may_be_long(nextword):
    heading, vanilla, *_ = nextword("list", "modifications").out.splitlines()
    assert heading.split("  ")[0] == "name"
    assert heading.split()[-2:] == ["ratio", "paper"]
    assert vanilla.split()[:3] == ["vanilla", "Vanilla", "223,043,328"]
    row = nextword("list", "modifications", "--json").json[0]
    assert (row["parameters_relative"], row["operations_relative"]) == (1, 1)
