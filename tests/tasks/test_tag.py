"""Tagging from file to prediction, for every family of taggers."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from labelled_texts import tagged_sentences

import nextword
from nextword.blocks import crf
from nextword.cli import main
from nextword.core import catalog
from nextword.data.batches.words import Sentences
from nextword.models.words import Spelled, to_tensors
from nextword.tasks.taggers import chain_of

SMALL = {"model.hidden": 16, "model.embedding": 16, "model.spelling_width": 16, "train.precision": "fp32"}
SMALL["train.rate"] = 0.02  # networks this small and trainings this short need a high one


@pytest.fixture
def sentences(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.conll").write_text(tagged_sentences())
    Path("test.conll").write_text(tagged_sentences(20, seed=1))
    return "train.conll"


def train(sentences, model="lstm", steps=40, out=None, **sets):
    given = SMALL | {"train.steps": steps} | {key.replace("__", "."): value for key, value in sets.items()}
    return nextword.train(sentences, task="tag", model=model, set=given, out=out)


@pytest.mark.parametrize("model", catalog.names("tagger"))
def test_every_family_learns(model, sentences):
    run = train(sentences, model)
    report = run.evaluate("test.conll")
    assert report.accuracy > 0.9
    assert report.span_f1 > 0.85


@pytest.mark.parametrize("model", catalog.names("tagger"))
@pytest.mark.parametrize("head", catalog.names("tag_head"))
def test_batch_and_padding_change_nothing(model, head, sentences):
    run = train(sentences, model, steps=5, model__head=head).trained
    words = [["Ann", "sees", "Rome"], ["Zoe"], ["Bob", "often", "leaves", "New", "York", "."]]
    together = chain_of(run.model, Sentences(words, run.vocabulary.lexicon).take(np.arange(3)))
    for row, sentence in enumerate(words):
        alone = chain_of(run.model, Sentences([sentence], run.vocabulary.lexicon).take(np.arange(1)))
        own = together.emissions_BTK[row, : len(sentence)]
        assert torch.allclose(alone.emissions_BTK[0], own, atol=1e-5)
        assert crf.viterbi(alone)[0][0].tolist() == crf.viterbi(together)[0][row, : len(sentence)].tolist()


def test_bad_numbers_past_the_end_are_never_looked_at(sentences):
    run = train(sentences, steps=3).trained
    rows = Sentences([["Ann", "sees", "Rome", "."], ["Bob"]], run.vocabulary.lexicon).take(np.arange(2))
    words = to_tensors(rows, torch.device("cpu"))
    x_BTE = run.model.network.words(words)
    poisoned = x_BTE.clone()
    poisoned[1, 1:] = torch.nan
    with torch.no_grad():
        clean = run.model.network.encoder(x_BTE, words.lengths_B)
        found = run.model.network.encoder(poisoned, words.lengths_B)
    assert torch.equal(clean[1, :1], found[1, :1])
    assert torch.equal(clean[0], found[0])


def test_predictions_have_one_tag_and_confidence_a_word(sentences, capsys):
    train(sentences, "window").save("run")
    Path("new.txt").write_text("Ann visits New York .\n\nBob likes Oslo .\n")
    assert main.run(["predict", "run", "new.txt", "--json"]) == 0
    first, empty, last = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert [token["text"] for token in first["tokens"]] == ["Ann", "visits", "New", "York", "."]
    assert all(0 < token["confidence"] <= 1 for token in first["tokens"])
    assert [(span["label"], span["text"]) for span in first["spans"]] == [
        ("person", "Ann"),
        ("place", "New York"),
    ]
    assert empty == {"tokens": [], "spans": []}
    assert next(token["tag"] for token in last["tokens"]) == "B-person"


def test_predicted_tags_are_always_legal(sentences):
    from nextword.data.spans import illegal_steps

    run = train(sentences, steps=1, model__head="softmax")
    for prediction in run.predict(["New York York Ann", "York", ". York York"]):
        tags = [token["tag"] for token in prediction.values["tokens"]]
        assert illegal_steps(tags, "bio") == []


def test_the_same_seed_gives_the_same_weights(sentences):
    one, two = train(sentences, steps=3).trained.model, train(sentences, steps=3).trained.model
    pairs = zip(one.network.state_dict().values(), two.network.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_parts_of_speech_of_conllu(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = "{}\t{}\t_\t{}\tX\t_\t0\t_\t_\t_\n"
    block = "# text = Ann runs\n" + row.format(1, "Ann", "PROPN") + row.format(2, "runs", "VERB") + "\n"
    Path("a.conllu").write_text(block * 20)
    run = nextword.train("a.conllu", task="tag", model="window", set=SMALL | {"train.steps": 20})
    assert run.evaluate("a.conllu").accuracy == 1.0
    assert "span_f1" not in run.evaluate("a.conllu").to_json()


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("Ann\tN\nsees\n", "a.conll", "a.conll:2: expected 2 columns as in line 1, found 1"),
        ("Ann\n", "a.conll", "a.conll:1: a line must have a word and a tag"),
        ("1\tAnn\t_\tN\n", "a.conllu", "a.conllu:1: expected 10 columns as in CoNLL-U, found 4"),
        ("1 Ann _ N _ _ _ _ _ _\n", "a.conllu", "columns must be separated by tabs"),
        ("Ann\tN\nBob\tN\n", "a.conll", "every word has the tag 'N'"),
        ("Ann\t\nBob\tN\n", "a.conll", "a.conll:1: the word 'Ann' has no tag"),
        ("a\tB-x\nb\tL-x\nc\tS-x\n", "a.conll", "which belong to different schemes"),
        ('{"tokens": ["a", "b"], "tags": ["N"]}\n', "a.jsonl", "a.jsonl:1: there are 2 tokens but 1 tags"),
        ('{"tokens": ["a"]}\n', "a.jsonl", "a.jsonl:1: 'tokens' and 'tags' must be lists"),
        ("not json\n", "a.jsonl", "a.jsonl:1:1: this line is not JSON"),
        ('{"tokens": ["a", NaN], "tags": ["N", "V"]}\n', "a.jsonl", "NaN is not JSON"),
    ],
)
def test_mistakes_name_their_line(text, name, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    assert main.run(["train", name, "--task", "tag", "--model", "window", "--out", "run"]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not Path("run").exists()


def test_illegal_tags_are_repaired_or_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("a.conll").write_text("Ann\tB-x\nin\tO\nRome\tI-y\nhere\tB-y\n\n" * 12)
    train = ["train", "a.conll", "--task", "tag", "--model", "window", "--set", "train.steps=2"]
    assert main.run([*train, "--out", "run"]) == 0
    assert "sentences had tags that do not follow the scheme BIO and were repaired" in capsys.readouterr().err
    assert main.run([*train, "--out", "strict", "--set", "data.bio=strict"]) == 1
    assert "a.conll:3: the tag 'I-y' of 'Rome' may not stand there in BIO" in capsys.readouterr().err


def test_a_tag_that_training_has_not_seen_is_an_error_of_the_tagger(sentences):
    run = train(sentences, steps=3)
    Path("new.conll").write_text("Ann\tB-animal\nsees\tO\n")
    report = run.evaluate("new.conll")
    assert report.new_tags == ("B-animal",)
    assert report.accuracy <= 0.5


@pytest.mark.parametrize("forcing", ["teacher", "scheduled(linear)", "free"])
def test_an_autoregressive_tagger_learns_with_every_forcing(forcing, sentences):
    run = train(sentences, model__head="autoregressive", train__forcing=forcing, model__beam=2)
    assert run.evaluate("test.conll").span_f1 > 0.85


def test_own_tags_can_only_be_read_by_a_head_that_reads_tags(sentences, capsys):
    command = ["train", sentences, "--task", "tag", "--set", "train.forcing=free", "--out", "run"]
    assert main.run(command) == 1
    assert "a tagger with the head 'crf' reads no tags; leave it out, or use" in capsys.readouterr().err


@pytest.mark.parametrize("spelling", catalog.names("spelling"))
def test_every_spelling_learns(spelling, sentences):
    assert train(sentences, "window", model__spelling=spelling).evaluate("test.conll").span_f1 > 0.85


def test_pretrained_vectors_fill_the_table_and_stay_if_fixed(sentences, capsys):
    Path("v.txt").write_text("ann 1 2 3\nVISITS 4 5 6\nparis 7 8 9\n")
    given = {"model.vectors": "v.txt", "model.vectors_fixed": True}
    sets = {key: value for key, value in SMALL.items() if key != "model.embedding"} | {"train.steps": 3}
    run = nextword.train(sentences, task="tag", model="window", set=sets | given)
    lexicon, table_VE = run.trained.vocabulary.lexicon, run.model.network.words.table_VE
    ann, visits, paris = lexicon.word_ids(["Ann", "visits", "Paris"]).tolist()
    assert table_VE[[ann, visits, paris]].tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert lexicon.is_known("Ann")
    assert not lexicon.is_known("Paris")  # it has a vector, but training has not seen it
    run.save("run")
    again = nextword.load("run")
    assert torch.equal(again.model.network.words.table_VE, table_VE)
    free = nextword.train(sentences, task="tag", model="window", set=sets | {"model.vectors": "v.txt"})
    assert free.model.network.words.table_VE[ann].tolist() != [1, 2, 3]


def test_a_wrong_size_of_vectors_is_refused(sentences, capsys):
    Path("v.txt").write_text("ann 1 2 3\n")
    command = ["train", sentences, "--task", "tag", "--out", "run", "--set", "model.vectors=v.txt"]
    assert main.run([*command, "--set", "model.embedding=8"]) == 1
    assert "'model.embedding' is 8, but the vectors of v.txt have 3 numbers" in capsys.readouterr().err


@pytest.mark.parametrize("head", catalog.names("tag_head"))
def test_a_tagger_starts_from_another_and_keeps_what_it_knew(head, sentences, capsys):
    first = train(sentences, model__head=head, model__spelling="affixes+cnn", out="first")
    Path("new.conll").write_text("Zoë\tB-animal\nsees\tO\nQatar\tB-place\n\n" * 12)
    small = {"train.steps": 1, "train.rate": 1e-6, "train.precision": "fp32"}
    second = nextword.train("new.conll", task="tag", source="first", set=small)
    assert (
        second.trained.vocabulary.tags[: len(first.trained.vocabulary.tags)] == first.trained.vocabulary.tags
    )
    assert "B-animal" in second.trained.vocabulary.tags
    assert second.trained.vocabulary.lexicon.is_known("Qatar")
    text = ["Ann visits New York ."]
    before, after = (
        [token["tag"] for token in run.predict(text)[0].values["tokens"]] for run in (first, second)
    )
    assert before == after
    table_VE = second.model.network.words.table_VE
    row = int(second.trained.vocabulary.lexicon.word_ids(["Qatar"])[0])
    assert torch.allclose(table_VE[row], table_VE[0], atol=1e-4)  # it starts as the unknown word


def test_what_a_tagger_cannot_start_from_is_said_in_one_sentence(sentences, capsys):
    train(sentences, steps=1, out="first")
    start = ["train", sentences, "--from", "first", "--out", "run"]
    for more, message in (
        (["--set", "model.hidden=20"], "first does not fit: 'encoder.layers"),
        (["--task", "classify"], "--from 'first' is a tagger, and the task is 'classify'"),
        (["--model", "gru"], "--from 'first' is a lstm, and a gru cannot start from its weights"),
    ):
        assert main.run([*start, *more]) == 1
        assert message in capsys.readouterr().err
    Path("pos.conll").write_text("Ann\tNOUN\nruns\tVERB\n\n" * 5)
    assert main.run(["train", "pos.conll", "--from", "first", "--out", "run"]) == 1
    assert "pos.conll: the tags have the scheme 'none'" in capsys.readouterr().err


def test_a_form_that_was_read_before_gives_the_same_tags_whatever_is_kept(sentences):
    run = train(sentences, steps=5, model__spelling="affixes+cnn").trained
    texts = [["Ann", "sees", "Rome"], ["Zoe", "sees", "Ann"], ["Bob", "leaves", "Oslo", "."]]
    rows = [Sentences([words], run.vocabulary.lexicon).take(np.arange(1)) for words in texts]
    plain = [run.model.network.chain(to_tensors(each, torch.device("cpu"))).emissions_BTK for each in rows]
    for most in (100, 4, 3):  # all are kept, or the memory is emptied on the way
        run.model.spelled = Spelled(run.model.network.words.spelling, most)
        for each, expected in zip(rows * 2, plain * 2, strict=True):
            assert torch.allclose(chain_of(run.model, each).emissions_BTK, expected, atol=1e-5)
        assert len(run.model.spelled.places) <= max(most, 4)
