"""The autoregressive head: each tag in view of those before it."""

import itertools

import numpy as np
import pytest
import torch

from nextword.blocks import crf
from nextword.blocks.own_tags import AutoregressiveTags
from nextword.data import spans

TAGS = ("O", "B-x", "I-x", "B-y")
D, T = 6, 4


@pytest.fixture
def head():
    torch.manual_seed(3)
    made = AutoregressiveTags(D, *(torch.from_numpy(array) for array in spans.legal(TAGS, "bio")))
    with torch.no_grad():
        for weight in made.parameters():
            weight += 0.5 * torch.randn_like(weight)
    return made.eval()


@pytest.fixture
def features():
    return torch.randn(3, T, D, generator=torch.Generator().manual_seed(1))


def _log_p(head, feature_TD, tags):
    """Compute log p of tags step by step, as the equation says."""
    state, total = head.start(feature_TD[:1]), 0.0
    for t, tag in enumerate(tags):
        if t:
            state = head.read(feature_TD[t : t + 1], torch.tensor([tags[t - 1]]), state)
        is_last = torch.tensor([t == len(tags) - 1])
        total += float(head.log_probs(feature_TD[t : t + 1], state, is_last)[0, tag])
    return total


@torch.no_grad()
def test_a_beam_as_wide_as_the_tree_finds_the_best_tags(head, features):
    every = list(itertools.product(range(len(TAGS)), repeat=T))
    _, found_BT = head.search(features, torch.full((3,), T), size=len(every))
    for row in range(3):
        scores = [_log_p(head, features[row], tags) for tags in every]
        assert abs(np.logaddexp.reduce(scores)) < 1e-4
        assert tuple(found_BT[row].tolist()) == every[int(np.argmax(scores))]


@torch.no_grad()
def test_greedy_search_takes_the_best_tag_of_each_word(head, features):
    logp_BTK, tags_BT = head.search(features, torch.full((3,), T))
    assert torch.equal(tags_BT, logp_BTK.argmax(dim=2))
    total = float(logp_BTK[0].gather(1, tags_BT[0][:, None]).sum())
    assert total == pytest.approx(_log_p(head, features[0], tags_BT[0].tolist()), abs=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("size", [1, 3])
def test_padding_and_other_rows_change_nothing(head, features, size):
    lengths_B = torch.tensor([4, 2, 1])
    _, together_BT = head.search(features, lengths_B, size)
    for row, length in enumerate(lengths_B.tolist()):
        _, alone_1T = head.search(features[row : row + 1, :length], lengths_B[row : row + 1], size)
        assert together_BT[row, :length].tolist() == alone_1T[0].tolist()


@torch.no_grad()
def test_what_is_found_is_legal_and_has_the_probability_of_its_tag_as_confidence(head, features):
    head.beam = 3
    chain = head.chain(features, torch.tensor([4, 4, 2]))
    tags_BT, score_B = crf.viterbi(chain)
    for row, length in enumerate((4, 4, 2)):
        tags = tags_BT[row, :length].tolist()
        assert spans.illegal_steps([TAGS[tag] for tag in tags], "bio") == []
        assert float(score_B[row]) == pytest.approx(_log_p(head, features[row], tags), abs=1e-4)
        own_T = crf.marginals(chain)[row, range(length), tags]
        assert torch.allclose(own_T, chain.emissions_BTK[row, range(length), tags].exp(), atol=1e-5)


@torch.no_grad()
def test_reading_the_true_tags_one_by_one_is_teacher_forcing(head, features):
    tags_BT, lengths_B = torch.tensor([[1, 2, 0, 3], [0, 0, 1, -1], [3, -1, -1, -1]]), torch.tensor([4, 3, 1])
    at_once = head.loss(features, tags_BT, lengths_B)
    one_by_one = head.loss(features, tags_BT, lengths_B, lambda true_B, scores_BK: true_B)
    own = head.loss(features, tags_BT, lengths_B, lambda true_B, scores_BK: scores_BK.argmax(dim=1))
    assert float(at_once) == pytest.approx(float(one_by_one), rel=1e-5)
    assert float(own) != pytest.approx(float(at_once), rel=1e-4)
