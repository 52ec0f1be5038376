"""``/v1/predict``: tags and classes, as `nextword predict --json` prints them."""

import pytest
from served import serving

import nextword

SMALL = {"train.steps": 5}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """A tagger, a classifier and what they predict in process."""
    folder = tmp_path_factory.mktemp("labelled")
    (folder / "names.conll").write_text("Ann\tB-person\nvisits\tO\nYork\tB-place\n\n" * 30)
    (folder / "films.tsv").write_text("a fine film\tgood\na dull film\tbad\n" * 30)
    nextword.train(
        str(folder / "names.conll"), task="tag", model="window", set=SMALL, out=str(folder / "names")
    )
    nextword.train(str(folder / "films.tsv"), task="classify", model="generative", out=str(folder / "films"))
    with serving(folder / "names", folder / "films") as site:
        yield site, folder


@pytest.mark.parametrize(
    ("name", "inputs"), [("names", ["Ann visits York"]), ("films", ["a fine film", "dull"])]
)
def test_predictions_are_those_of_the_run(labelled, name, inputs):
    site, folder = labelled
    got = site.ask("/v1/predict", {"model": name, "input": inputs}).json
    own = [dict(each.values) for each in nextword.predict(str(folder / name), inputs, format="jsonl")]
    assert got["data"] == own


def test_model_list_names_the_task(labelled):
    tasks = {each["id"]: each["task"] for each in labelled[0].ask("/v1/models").json["data"]}
    assert tasks == {"names": "tag", "films": "classify"}


def test_completion_of_a_tagger_says_where_to_ask(labelled):
    found = labelled[0].complete("names", "Ann")
    assert found.status == 400
    assert "/v1/predict" in found.json["error"]["message"]


def test_language_model_predicts_no_labels(site):
    found = site.ask("/v1/predict", {"model": "counts", "input": "the"})
    assert (found.status, found.json["error"]["code"]) == (400, "not_a_predictor")
