"""A neural run is used like any other: measured, scored, continued, compressed, and as the kenlm module."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
from small_texts import SENTENCES

import nextword
import nextword.kenlm as kenlm
from nextword.api.run import Run

TEXT = SENTENCES * 30
SENTENCE = "the dog sat on the zebra"


@pytest.fixture(scope="module", params=["lstm", "transformer", "window"])
def run(request, tmp_path_factory) -> Run:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("neural")
    (folder / "text.txt").write_text(TEXT)
    return nextword.train(
        str(folder / "text.txt"),
        model=request.param,
        tokenizer="words",
        set={"model.hidden": 16, "train.steps": 12},
        out=str(folder / "run"),
    )


@pytest.fixture(scope="module")
def model(run) -> kenlm.Model:
    return kenlm.Model(str(run.path))


def _score(run: Run, sentence: str, begin: bool = True, end: bool = True) -> np.ndarray:
    """log10 p of each word by the contract."""
    ids = np.append(run.tokenizer.encode(sentence), [2] if end else []).astype(np.int64)
    logp, _ = run.model.score(ids[None], np.array([len(ids)]), run.model.start(1, None, begin))
    return np.asarray(logp, np.float64)[0] / np.log(10)


@pytest.mark.parametrize("bos", [True, False])
@pytest.mark.parametrize("eos", [True, False])
def test_kenlm_scores_are_the_models(run, model, bos, eos):
    expected = _score(run, SENTENCE, bos, eos)
    assert model.score(SENTENCE, bos=bos, eos=eos) == pytest.approx(expected.sum(), abs=1e-4)
    full = list(model.full_scores(SENTENCE, bos=bos, eos=eos))
    assert [log10 for log10, _, _ in full] == pytest.approx(expected.tolist(), abs=1e-5)
    assert [unknown for _, _, unknown in full][5] is True


def test_kenlm_states_go_word_by_word(run, model):
    state, after, total = kenlm.State(), kenlm.State(), 0.0
    model.BeginSentenceWrite(state)
    for word in SENTENCE.split():
        total += model.BaseScore(state, word, after)
        state = copy.copy(after)
    total += model.BaseScore(state, "</s>", after)
    assert total == pytest.approx(float(_score(run, SENTENCE).sum()), abs=1e-4)


def test_kenlm_gives_the_same_for_many_words_after_one_state(run, model):
    state, after = kenlm.State(), kenlm.State()
    model.BeginSentenceWrite(state)
    first = [model.BaseScore(state, word, after) for word in ("the", "cat", "the", "zebra")]
    assert first[0] == pytest.approx(first[2], abs=1e-5)
    model.BaseScore(state, "the", after)
    follow = model.BaseScore(after, "cat", kenlm.State())
    assert follow == pytest.approx(_score(run, "the cat")[1], abs=1e-5)
    model.NullContextWrite(state)
    assert model.BaseScore(state, "cat", after) == pytest.approx(_score(run, "cat", False)[0], abs=1e-5)


def test_kenlm_scores_many_sentences_as_one_by_one(model):
    sentences = ["the cat", "", SENTENCE, "a dog ran"]
    assert model.score_many(sentences) == pytest.approx([model.score(s) for s in sentences], abs=1e-4)


def test_lines_are_carried_in_a_text_and_not_where_lines_are_asked_for(run):
    text = "the cat sat\nthe dog ran\n"
    scored = run.score(text)
    ids = [*run.tokenizer.encode("the cat sat"), 2, *run.tokenizer.encode("the dog ran"), 2]
    logp, _ = run.model.score(np.array([ids]), np.array([len(ids)]))
    assert [token.logprob for token in scored.tokens] == pytest.approx(np.asarray(logp)[0].tolist(), abs=1e-5)


def test_evaluation_says_how_far_the_model_looks(run, tmp_path):
    path = tmp_path / "held.txt"
    path.write_text(TEXT[:400])
    assert "ctx:document" in run.evaluate(path).signature


def test_run_tells_its_size_and_a_few_numbers(run):
    told = run.summary()
    assert told["parameters"] == sum(weight.numel() for weight in run.model.network.parameters())
    assert f"{told['parameters']:,} parameters" in run.describe()
    assert told["steps"] == 12
    assert len(told) < 25
    page = (run.path / "README.md").read_text()
    assert page.count("loss") <= 1
    assert f"parameters: {told['parameters']:,}" in page
    json.dumps(told)


def test_a_file_is_compressed_and_comes_back_in_a_loaded_run(run):
    data = TEXT[:300].encode()
    coded = run.compress(data)
    assert nextword.load(run.path).decompress(coded) == data


def test_text_is_continued_in_every_way(run):
    for decode in ("greedy", "sample", "beam"):
        found = run.generate("the cat", decode=decode, max_tokens=5, seed=1)
        assert str(found).startswith("the cat")
    pairs = run.next("the", top=3)
    assert len(list(pairs)) == 3
