"""Predictions of classifiers: in order, in bounded memory, in every format, with any model."""

import json
import re
from html import unescape

import numpy as np
import pytest

from nextword.core.errors import ConfigError
from nextword.core.task import PredictOptions
from nextword.data.classes import ClassVocabulary
from nextword.models.calibration import Calibration
from nextword.tasks import labelling
from nextword.tasks.labelling import LabelPredictor
from nextword.text.lexicon import Lexicon, LexiconSettings
from nextword.text.splitter import split

TEXTS = ["a good film", "bad", "", "good good bad"]


class Counting:
    """A classifier that counts good and bad words; it reads text, and words if ``logits_of`` is there."""

    def __init__(self, several=False):
        self.calibration = Calibration(1.0, (0.4, 0.4) if several else ())
        self.vocabulary = ClassVocabulary(Lexicon.of([], LexiconSettings()), ("good", "b\tad"), several)

    def logits(self, texts):
        return np.array([self._count(split(text)) for text in texts])

    @staticmethod
    def _count(words):
        return [float(words.count("good")), float(words.count("bad"))]


class CountingWords(Counting):
    def logits_of(self, words):
        return np.array([self._count(each) for each in words])


def predictor(model=None, **options):
    model = model or Counting()
    return LabelPredictor(model, model.vocabulary, PredictOptions(**options), name="tiny")


def test_label_and_probability_on_a_line():
    made = predictor()
    lines = "".join(made.write(made.predict(TEXTS))).splitlines()
    assert lines == ["good\t0.731059", "b ad\t0.731059", "good\t0.500000", "good\t0.731059"]


def test_a_table_has_all_probabilities():
    made = predictor(format="tsv")
    lines = "".join(made.write(made.predict(TEXTS))).splitlines()
    assert lines[:3] == ["label\tgood\tb ad", "good\t0.731059\t0.268941", "b ad\t0.268941\t0.731059"]


def test_values_are_probabilities_and_several_labels_are_listed():
    (found,) = predictor().predict(["a good film"])
    assert list(found.values) == ["label", "probabilities"]
    assert sum(found.values["probabilities"].values()) == pytest.approx(1)
    (found,) = predictor(Counting(several=True)).predict(["good bad"])
    assert found.values["labels"] == ["good", "b\tad"]
    assert found.text == "good,b ad\t0.731059,0.731059"
    json.dumps(found.values)


def test_little_is_read_ahead(monkeypatch):
    monkeypatch.setattr(labelling, "_CHUNK", 5)
    read = []

    def endless():
        while True:
            read.append(1)
            yield "good" if len(read) % 2 else "bad"

    found = predictor().predict(endless())
    labels = [next(found).values["label"] for _ in range(12)]
    assert labels == ["good", "b\tad"] * 6
    assert len(read) == 15


def test_long_texts_are_few_at_a_time(monkeypatch):
    monkeypatch.setattr(labelling, "_CHUNK_LETTERS", 100)
    model, sizes = Counting(), []
    logits = model.logits
    model.logits = lambda texts: sizes.append(len(texts)) or logits(texts)
    assert len(list(predictor(model).predict(["good " * 15] * 10))) == 10
    assert max(sizes) == 2


@pytest.mark.parametrize("text", ["a good <b>film</b>", "good फ़िल्म अच्छी", "good 电影 很好", ""])
def test_the_page_explains_any_script_and_runs_nothing(text):
    made = predictor(format="html")
    page = "".join(made.write(made.predict([text])))
    assert page.endswith("</html>\n")
    paragraph = re.search(r'<p class="marked" dir="auto">(.*?)</p>', page)[1]
    assert unescape(re.sub("<[^>]*>", "", paragraph)) == text
    if text:
        assert 'rgba(var(--hot),0.80)" title="good: +1.00">good</span>' in page


def test_given_words_are_taken_as_they_are():
    made = predictor(CountingWords(), pretokenized=True)
    found = [each.values["label"] for each in made.predict(["bad good,", "bad good"])]
    assert found == ["b\tad", "good"]
    page = "".join(predictor(CountingWords(), pretokenized=True, format="html").write(
        predictor(CountingWords(), pretokenized=True, format="html").predict(["bad good,"])
    ))  # fmt: skip
    assert 'title="good,: ' in page


def test_a_classifier_of_texts_refuses_words():
    with pytest.raises(ConfigError, match="'tiny' reads the text itself; leave it out"):
        predictor(pretokenized=True)


def test_tables_are_read_by_their_extension(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\na good film,x\nbad,y\n")
    found = list(predictor().predict_file(str(tmp_path / "a.csv")))
    assert [each.values["label"] for each in found] == ["good", "b\tad"]
