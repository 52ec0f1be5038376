"""The tag O is scored lower when tags are chosen, as far as the F1 of held-out spans gains by it."""

from pathlib import Path

import pytest
import torch
from labelled_texts import tagged_sentences

import nextword
from nextword.blocks import crf
from nextword.blocks.crf import Chain
from nextword.core import catalog
from nextword.core.errors import DamagedError
from nextword.data.tagged import TaggedSentences, TagVocabulary
from nextword.models.tagger import OUTSIDE, Tagger
from nextword.tasks import outside
from nextword.text.lexicon import Lexicon, LexiconSettings

TAGS = ("O", "B-place", "I-place")
WORDS = ["Ann", "likes", "Rome"]


def tagger(lowered=0.0):
    vocabulary = TagVocabulary(Lexicon.of([WORDS], LexiconSettings()), TAGS, "bio")
    family = catalog.find("tagger", "window")
    torch.manual_seed(0)
    network = family.build(family.Settings(hidden=8, embedding=8, spelling_width=8), vocabulary)
    return Tagger(network, vocabulary, lowered)


def chain(*outside_scores):
    """Scores of one sentence: O as given, B-place and I-place 0, all legal transitions 0."""
    emissions_BTK = torch.tensor([[[score, 0.0, -0.1] for score in outside_scores]])
    legal = [torch.from_numpy(each) for each in tagger().vocabulary.legal()]
    scores = [torch.where(each, 0.0, crf.FORBIDDEN) for each in legal]
    return Chain(emissions_BTK, *scores, torch.tensor([len(outside_scores)]))


def test_words_that_are_outside_by_less_than_the_change_are_found():
    found = {change: tagger(change).best(chain(0.4, 5.0, 1.2)).tolist()[0] for change in (0.0, 0.5, 1.5)}
    assert found == {0.0: [0, 0, 0], 0.5: [1, 0, 0], 1.5: [1, 0, 1]}


def test_a_search_that_has_decided_is_left_alone():
    decided = chain(0.4, 5.0, 1.2)._replace(decided_BT=torch.tensor([[0, 1, 0]]))
    assert tagger(9.0).best(decided).tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("found", "chosen"),
    [
        ({0.0: 0.30, 0.5: 0.29}, 0.0),
        ({0.0: 0.30, 0.5: 0.303}, 0.0),  # no gain to speak of
        ({0.0: 0.27, 0.5: 0.31, 1.0: 0.33, 1.5: 0.332}, 1.0),
    ],
)
def test_the_smallest_change_that_gains_most_is_chosen(found, chosen):
    assert outside.choose(found) == chosen


def test_few_spans_choose_nothing():
    made = tagger()
    few = TaggedSentences([WORDS] * 9, [["O", "O", "B-place"]] * 9, made.vocabulary)
    assert outside.f1_by_change(made, few, made.vocabulary) is None


def test_f1_is_measured_until_it_falls():
    made = tagger()
    many = TaggedSentences([WORDS] * 120, [["O", "O", "B-place"]] * 120, made.vocabulary)
    found = outside.f1_by_change(made, many, made.vocabulary)
    assert list(found)[:2] == [0.0, 0.5]
    assert all(0.0 <= each <= 1.0 for each in found.values())


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.conll").write_text(tagged_sentences(40))
    sets = {"model.hidden": 8, "model.embedding": 8, "train.steps": 2, "train.precision": "fp32"}
    return nextword.train("train.conll", task="tag", model="window", set=sets)


def test_the_change_is_saved_and_changes_tags_but_no_probabilities(run):
    text = "Ann likes Rome ."
    before = run.predict(text)[0].values["tokens"]
    run.trained.model.lowered = 50.0
    after = run.predict(text)[0].values["tokens"]
    assert all(token["tag"] != "O" for token in after)
    other = [(a, b) for a, b in zip(before, after, strict=True) if a["tag"] != b["tag"]]
    assert other
    assert all(a["confidence"] + b["confidence"] < 1.0001 for a, b in other)
    run.save("run")
    assert nextword.load("run").predict(text)[0].values["tokens"] == after


def test_a_damaged_change_is_refused(run):
    run.trained.model.lowered = 1.0
    run.save("run")
    Path("run", OUTSIDE).write_text('{"raised": 1}')
    with pytest.raises(DamagedError, match="damaged"):
        nextword.load("run")
