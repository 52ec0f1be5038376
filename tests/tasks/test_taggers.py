"""Predictions of taggers: in order, in bounded memory, the same one by one, in every format."""

import pytest
import torch

from nextword.core import catalog
from nextword.core.task import PredictOptions
from nextword.data.spans import spans_of
from nextword.data.tagged import TagVocabulary
from nextword.models.tagger import Tagger
from nextword.tasks import taggers
from nextword.tasks.taggers import TagPredictor
from nextword.text.lexicon import Lexicon, LexiconSettings

TAGS = ("O", "B-place", "I-place", "B-person", "I-person")
SENTENCES = ["Ann likes New York .", "", "Rome", "Bob can't leave Oslo, or New York"] * 5


def predictor(options=None, tags=TAGS, scheme="bio", seed=0):
    lexicon = Lexicon.of([text.split() for text in SENTENCES], LexiconSettings())
    vocabulary = TagVocabulary(lexicon, tags, scheme)
    family = catalog.find("tagger", "window")
    torch.manual_seed(seed)
    network = family.build(family.Settings(hidden=8, embedding=8, spelling_width=8), vocabulary)
    return TagPredictor(Tagger(network, vocabulary), vocabulary, options or PredictOptions(), name="tiny")


def same(one, other):
    """Whether predictions agree, but for the last digits of their confidences."""
    assert [(each["text"], each["tag"]) for each in one["tokens"]] == [
        (each["text"], each["tag"]) for each in other["tokens"]
    ]
    for a, b in zip(one["tokens"] + one["spans"], other["tokens"] + other["spans"], strict=True):
        assert a["confidence"] == pytest.approx(b["confidence"], abs=1e-4)


def test_predictions_are_in_order_and_equal_to_one_by_one():
    made = predictor()
    together = list(made.predict(SENTENCES))
    assert [" ".join(token["text"] for token in each.values["tokens"]) for each in together[:3]] == [
        "Ann likes New York .", "", "Rome",
    ]  # fmt: skip
    for text, each in zip(SENTENCES, together, strict=True):
        same(each.values, next(made.predict([text])).values)


def test_little_is_read_ahead(monkeypatch):
    monkeypatch.setattr(taggers, "_CHUNK", 7)
    read = []

    def endless():
        while True:
            read.append(1)
            yield "Ann likes Rome"

    found = predictor().predict(endless())
    for _ in range(20):
        next(found)
    assert len(read) == 21


def test_long_sentences_are_read_in_small_batches(monkeypatch):
    monkeypatch.setattr(taggers, "_POSITIONS", 40)
    made, sizes, chain_of = predictor(), [], taggers.chain_of

    def watched(tagger, rows):
        sizes.append(rows.words_BT.size)
        return chain_of(tagger, rows)

    monkeypatch.setattr(taggers, "chain_of", watched)
    texts = ["Ann " * n for n in (30, 1, 12, 10, 9, 50)]
    found = [len(each.values["tokens"]) for each in made.predict(texts)]
    assert found == [30, 1, 12, 10, 9, 50]
    assert sorted(sizes)[-1] == 50
    assert all(size <= 40 for size in sorted(sizes)[:-1])


def test_spans_have_words_characters_and_a_probability():
    made = predictor(seed=3)
    text = "Bob can't leave Oslo, or New York"
    (found,) = made.predict([text])
    tags = [token["tag"] for token in found.values["tokens"]]
    assert [(each["start"], each["end"], each["label"]) for each in found.values["spans"]] == spans_of(tags)
    assert found.values["spans"]
    for span in found.values["spans"]:
        assert list(span) == ["start", "end", "label", "text", "confidence", "from", "to"]
        assert text[span["from"] : span["to"]] == span["text"]
        least = min(token["confidence"] for token in found.values["tokens"][span["start"] : span["end"]])
        assert 0 < span["confidence"] <= least + 1e-6
    assert [set(token) for token in found.values["tokens"]] == [{"text", "tag", "confidence"}] * len(tags)


def test_words_that_are_given_stay_whole():
    (found,) = predictor(PredictOptions(pretokenized=True)).predict(["can't stop ,now"])
    assert [token["text"] for token in found.values["tokens"]] == ["can't", "stop", ",now"]
    assert all("from" not in span for span in found.values["spans"])


def test_conll_has_a_line_a_word_and_a_blank_line_a_sentence():
    made = predictor()
    text = "".join(made.write(made.predict(["Ann likes", "Rome"])))
    first, second = text.removesuffix("\n\n").split("\n\n")
    assert [line.split("\t")[0] for line in first.splitlines()] == ["Ann", "likes"]
    assert {line.split("\t")[1] for line in (first + "\n" + second).splitlines()} <= set(TAGS)


@pytest.mark.parametrize(
    "text", ["राम ने नई दिल्ली को देखा।", "李明喜欢北京。", "<script>alert(1)</script> & Ann"]
)
@pytest.mark.parametrize(("tags", "scheme"), [(TAGS, "bio"), (("NOUN", "VERB", "<X>"), "none")])
def test_the_page_shows_any_script_and_runs_nothing(text, tags, scheme):
    made = predictor(PredictOptions("html"), tags, scheme)
    page = "".join(made.write(made.predict([text])))
    assert page.startswith("<!DOCTYPE html>")
    assert page.endswith("</html>\n")
    assert "<title>Tagged by tiny</title>" in page
    assert 'class="legend"' in page
    assert "<script" not in page
    assert "<X>" not in page
    if "<" not in text:
        assert text[0] in page


def test_a_conllu_file_gets_new_tags(tmp_path):
    rows = "# text = Ann runs\n1\tAnn\tAnn\tOLD\t_\t_\t0\t_\t_\t_\n2\truns\trun\tOLD\t_\t_\t1\t_\t_\t_\n"
    (tmp_path / "a.conllu").write_text(rows + "\n" + rows)
    made = predictor(tags=("NOUN", "VERB"), scheme="none")
    found = list(made.predict_file(str(tmp_path / "a.conllu")))
    tags = [token["tag"] for token in found[0].values["tokens"]]
    assert found[0].text == rows.replace("OLD", tags[0], 1).replace("OLD", tags[1], 1)
    assert "".join(made.write(found)).count("# text = Ann runs\n") == 2
