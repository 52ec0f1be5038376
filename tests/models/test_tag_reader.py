"""An autoregressive tagger on the contract of language models."""

import numpy as np
import pytest
import torch

from nextword.blocks.own_tags import AutoregressiveTags
from nextword.core.contracts import END, START, UNKNOWN, LanguageModel
from nextword.core.errors import ConfigError
from nextword.data import spans
from nextword.models.tag_reader import Sentence, TagReader

TAGS = ("O", "B-x", "I-x", "B-y")
LENGTHS = torch.tensor([5, 2, 3])


@pytest.fixture
def model():
    torch.manual_seed(4)
    head = AutoregressiveTags(6, *(torch.from_numpy(array) for array in spans.legal(TAGS, "bio")))
    return TagReader(head.eval())


@pytest.fixture
def source():
    return Sentence(torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(2)), LENGTHS)


IDS = np.array([[4, 5, 3, 6, 3, END], [3, 4, END, 3, 3, 3], [6, 3, 3, END, 3, 3]])
COUNTS = np.array([6, 3, 4])


def test_it_is_a_language_model(model):
    assert isinstance(model, LanguageModel)
    assert model.vocab_size == len(TAGS) + 3


def test_steps_give_what_scoring_gives(model, source):
    state = model.start(3, source)
    logp_BT, after = model.score(IDS, COUNTS, state)
    logp_BV = model.next(state)
    for t in range(IDS.shape[1]):
        for row in range(3):
            if t < COUNTS[row]:
                assert float(logp_BT[row, t]) == pytest.approx(float(logp_BV[row, IDS[row, t]]), abs=1e-5)
            else:
                assert float(logp_BT[row, t]) == 0.0
        logp_BV, state = model.step(IDS[:, t], state)
    part_BT, half = model.score(IDS[:, :2], np.array([2, 0, 1]), model.start(3, source))
    rest_BT, end = model.score(IDS[:, 2:], np.array([4, 0, 0]), half)
    assert torch.allclose(torch.cat([part_BT, rest_BT], dim=1)[0], logp_BT[0], atol=1e-5)
    assert torch.allclose(end.inner.h_BH[0], after.inner.h_BH[0], atol=1e-5)
    assert half.read_B.tolist() == [2, 0, 1]


def test_probabilities_sum_to_one_and_end_comes_after_the_last_word_only(model, source):
    state = model.start(3, source)
    for t in range(5):
        logp_BV = model.next(state)
        assert torch.allclose(logp_BV.exp().sum(dim=1), torch.ones(3), atol=1e-5)
        assert (logp_BV[:, [UNKNOWN, START]] == -torch.inf).all()
        assert (logp_BV[:, END] == 0.0).tolist() == (t >= LENGTHS).tolist()
        _, state = model.step(np.array([3, 3, 3]), state)


def test_rows_are_taken_and_joined(model, source):
    _, state = model.step(IDS[:, 0], model.start(3, source))
    rows = [model.reorder(state, np.array([2, 0])), model.reorder(state, np.array([1]))]
    short = rows[1]._replace(
        sentence=Sentence(rows[1].sentence.features_BTD[:, :2], rows[1].sentence.lengths_B)
    )
    joined = model.join([rows[0], short])
    assert model.rows(joined) == 3
    assert torch.allclose(model.next(joined), model.next(state)[[2, 0, 1]], atol=1e-6)


def test_a_sentence_has_to_be_read_first(model):
    with pytest.raises(ConfigError, match="give one source a row"):
        model.start(2)
