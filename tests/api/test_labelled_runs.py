"""A tagger and a classifier as Python objects: what they do, show and refuse."""

import pytest
from labelled_texts import labelled_texts, tagged_sentences

import nextword
from nextword.cli import main
from nextword.core.errors import ConfigError

SMALL = {"model.hidden": 8, "model.embedding": 8, "model.spelling_width": 8, "train.threads": 1}


@pytest.fixture(scope="module", params=["tag", "classify"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    path = folder / {"tag": "t.conll", "classify": "t.tsv"}[request.param]
    path.write_text(tagged_sentences() if request.param == "tag" else labelled_texts(160))
    made = nextword.train(
        path, task=request.param, model="lstm", set=SMALL | {"train.steps": 20}, out=folder / "run"
    )
    return made, path


def test_it_predicts_evaluates_and_shows_itself(run):
    made, path = run
    assert len(list(made.predict(["Ann sees Rome .", "a lovely story"]))) == 2
    assert 0 <= made.evaluate(path).accuracy <= 1
    assert "lstm" in repr(made)
    assert "<" in made._repr_html_()


@pytest.mark.parametrize("verb", ["next", "score", "generate"])
def test_what_only_language_models_do_is_refused_in_one_sentence(run, verb):
    made, _ = run
    noun = made.settings.find_task().noun
    with pytest.raises(ConfigError, match=f"is a {noun}, and this needs a language model"):
        list(getattr(made, verb)("the cat"))


def test_the_card_and_the_summary_have_the_measure_that_decides(run):
    made, _ = run
    decides = {"tag": "span_f1", "classify": "accuracy"}[made.settings.task]
    assert any(decides in name for name in made.summary())
    card = (made.path / "README.md").read_text()
    assert decides.replace("_", " ") in card.lower()
    assert f"A {made.settings.find_task().noun} of the family `lstm`" in card
    assert "tokens" not in card


def test_doctor_finds_nothing_wrong(run, capsys):
    made, _ = run
    assert main.run(["doctor", str(made.path)]) == 0, capsys.readouterr()
