"""Heads: exact distributions that sum to 1, never a forbidden word, score and loss of the same numbers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nextword.blocks.adaptive import AdaptiveHead, cutoffs_of
from nextword.blocks.embeddings import Embedding
from nextword.blocks.heads import SoftmaxHead, make_head
from nextword.core import catalog
from nextword.core.errors import ConfigError

torch.set_num_threads(1)

HEADS = catalog.names("head")
WORDS, WIDTH = 60, 12


def _head(name: str, tied: bool = False, forbidden=(0, 1)) -> nn.Module:
    torch.manual_seed(3)
    embedding = Embedding(WORDS, WIDTH, extra=2) if tied else None
    head = make_head(name, WIDTH, WORDS, forbidden, embedding.weight_VE if embedding else None)
    head.prepare(torch.randint(0, 30, (WORDS,)).float())
    with torch.no_grad():
        for weight in head.parameters():
            weight += 0.3 * torch.randn_like(weight)
    return head


@pytest.fixture(params=[(name, tied) for name in HEADS for tied in (False, True)], ids=str)
def head(request) -> nn.Module:
    return _head(*request.param)


def test_distribution_sums_to_one_without_forbidden_words(head):
    logp_BV = head.log_probs(torch.randn(5, WIDTH))
    assert logp_BV.shape == (5, WORDS)
    assert logp_BV.dtype == torch.float32
    torch.testing.assert_close(logp_BV.exp().sum(-1), torch.ones(5))
    assert torch.isneginf(logp_BV[:, :2]).all()
    assert torch.isfinite(logp_BV[:, 2:]).all()


def test_score_is_log_probs_of_the_words(head):
    features_ND, ids_N = torch.randn(50, WIDTH), torch.randint(2, WORDS, (50,))
    expected_N = head.log_probs(features_ND)[torch.arange(50), ids_N]
    torch.testing.assert_close(head.score(features_ND, ids_N), expected_N, atol=1e-5, rtol=1e-5)


def test_score_of_a_forbidden_word_is_log_0(head):
    assert torch.isneginf(head.score(torch.randn(2, WIDTH), torch.tensor([0, 1]))).all()


def test_no_rows_are_no_scores(head):
    assert head.score(torch.zeros(0, WIDTH), torch.zeros(0, dtype=torch.int64)).shape == (0,)


def test_loss_is_minus_the_sum_of_the_scores(head):
    features_ND, ids_N = torch.randn(50, WIDTH), torch.randint(2, WORDS, (50,))
    torch.testing.assert_close(head.loss(features_ND, ids_N), -head.score(features_ND, ids_N).sum())


def test_gradients_are_those_of_the_distribution(head):
    features_ND, ids_N = torch.randn(50, WIDTH, requires_grad=True), torch.randint(2, WORDS, (50,))
    weights = (features_ND, *head.parameters())
    found = torch.autograd.grad(head.loss(features_ND, ids_N), weights)
    loss = -head.log_probs(features_ND)[torch.arange(50), ids_N].sum()
    for one, other in zip(found, torch.autograd.grad(loss, weights), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_smoothing_costs_more_and_stays_finite(head):
    features_ND, ids_N = 0.01 * torch.randn(50, WIDTH), torch.randint(2, WORDS, (50,))
    smoothed = head.loss(features_ND, ids_N, 0.1)
    assert torch.isfinite(smoothed)
    assert smoothed != head.loss(features_ND, ids_N)


@pytest.mark.parametrize("name", HEADS)
def test_prepared_head_knows_the_frequencies(name):
    head = make_head(name, WIDTH, WORDS, (1,))
    counts_V = torch.randint(0, 30, (WORDS,)).float()
    head.prepare(counts_V)
    counts_V += 0.5
    counts_V[1] = 0
    found_V = head.log_probs(torch.zeros(1, WIDTH))[0].exp()
    torch.testing.assert_close(found_V, counts_V / counts_V.sum(), atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", HEADS)
def test_weights_are_loaded_into_a_new_head(name):
    head, other = _head(name), make_head(name, WIDTH, WORDS, (0, 1))
    other.load_state_dict(head.state_dict())
    features_BD = torch.randn(3, WIDTH)
    assert torch.equal(head.log_probs(features_BD), other.log_probs(features_BD))


@pytest.mark.parametrize("name", HEADS)
def test_tied_weights_are_the_embedding(name):
    embedding = Embedding(WORDS, WIDTH)
    head = make_head(name, WIDTH, WORDS, (1,), embedding.weight_VE)
    assert any(weight is embedding.weight_VE for weight in head.parameters())
    head.loss(torch.randn(9, WIDTH), torch.arange(2, 11)).backward()
    assert embedding.weight_VE.grad is not None


def test_unknown_head_suggests_the_nearest():
    with pytest.raises(ConfigError, match="softmax"):
        make_head("sotfmax", WIDTH, WORDS, ())


def test_adaptive_head_agrees_with_torch():
    torch.manual_seed(0)
    theirs = nn.AdaptiveLogSoftmaxWithLoss(256, 300, [50, 120], div_value=4.0, head_bias=True)
    ours = AdaptiveHead(256, 300, cutoffs=(50, 120))
    with torch.no_grad():
        ours.words.frequent_VD.copy_(theirs.head.weight[:50])
        ours.cluster_CD.copy_(theirs.head.weight[50:])
        ours.bias_V.copy_(theirs.head.bias)
        for project_DD, weight_VD, other in zip(
            ours.words.projects, ours.words.weights, theirs.tail, strict=True
        ):
            project_DD.copy_(other[0].weight)
            weight_VD.copy_(other[1].weight)
    features_ND, ids_N = torch.randn(40, 256), torch.randint(0, 300, (40,))
    torch.testing.assert_close(ours.log_probs(features_ND), theirs.log_prob(features_ND))
    torch.testing.assert_close(ours.score(features_ND, ids_N), theirs(features_ND, ids_N).output)
    torch.testing.assert_close(ours.loss(features_ND, ids_N) / 40, theirs(features_ND, ids_N).loss)


def test_tied_clusters_are_the_softmax_over_their_words_embeddings():
    """The slow twin: log softmax over (frequent words, clusters), then over each cluster's own words."""
    torch.manual_seed(0)
    embedding = Embedding(60, 8)
    head = AdaptiveHead(8, 60, (1,), embedding.weight_VE, cutoffs=(10, 30))
    counts_V = torch.randint(1, 1000, (60,)).double()
    head.prepare(counts_V)
    features_ND = torch.randn(7, 8)
    order = sorted(range(60), key=lambda word: (word == 1, -float(counts_V[word]), word))
    with torch.no_grad():
        rows_VD = embedding.weight_VE[order]
        first_NV = torch.cat([features_ND @ rows_VD[:10].T, features_ND @ head.cluster_CD.T], 1) + head.bias_V
        first_NV = first_NV.log_softmax(1)
        wanted_NV = torch.full((7, 60), -torch.inf)
        wanted_NV[:, order[:10]] = first_NV[:, :10]
        for i, (begin, end) in enumerate(((10, 30), (30, 59))):
            bias_V = head.tail_bias_V[i][: end - begin]
            within_NV = (features_ND @ rows_VD[begin:end].T + bias_V).log_softmax(1)
            wanted_NV[:, order[begin:end]] = first_NV[:, 10 + i, None] + within_NV
        torch.testing.assert_close(head.log_probs(features_ND), wanted_NV)
    ids_N = torch.arange(2, 9)
    torch.testing.assert_close(head.score(features_ND, ids_N), wanted_NV[range(7), ids_N])
    (wanted_VE,) = torch.autograd.grad(
        -head.log_probs(features_ND)[range(7), ids_N].sum(), embedding.weight_VE
    )
    (found_VE,) = torch.autograd.grad(head.loss(features_ND, ids_N), embedding.weight_VE)
    torch.testing.assert_close(found_VE, wanted_VE)


@pytest.mark.parametrize("words", [6, 7, 20, 500, 33278])
def test_clusters_fit_any_vocabulary(words):
    first, second = cutoffs_of(words)
    assert 0 < first < second < words - 2


def test_softmax_head_looks_at_words_only_where_the_embedding_has_more_rows():
    embedding = Embedding(20, 4, extra=3)
    head = SoftmaxHead(4, 20, (), embedding.weight_VE)
    with torch.no_grad():
        embedding.weight_VE[20:] = torch.nan
    assert torch.isfinite(head.log_probs(torch.randn(2, 4))).all()
    assert torch.isfinite(head.loss(torch.randn(2, 4), torch.tensor([3, 4])))


def test_without_a_bias_there_is_no_weight_for_it_and_counts_change_nothing():
    head = make_head("softmax", WIDTH, WORDS, (0, 1), bias=False)
    before = head.log_probs(torch.ones(1, WIDTH))
    head.prepare(torch.arange(WORDS).float())
    assert dict(head.named_parameters()).keys() == {"weight_VD"}
    assert head.state_dict().keys() == {"weight_VD"}
    torch.testing.assert_close(head.log_probs(torch.ones(1, WIDTH)), before)


@pytest.mark.parametrize("words", [WORDS, 1100])  # plain and fused
def test_without_the_mask_the_loss_is_over_all_words_but_use_leaves_the_forbidden_out(words):
    torch.manual_seed(0)
    head = make_head("softmax", WIDTH, words, (0, 1), bias=False, mask=False)
    features_ND, targets_N = torch.randn(30, WIDTH, requires_grad=True), torch.randint(2, words, (30,))
    logits_NV = features_ND @ head.weight_VD.T
    expected = nn.functional.cross_entropy(logits_NV, targets_N, reduction="sum")
    loss = head.loss(features_ND, targets_N)
    torch.testing.assert_close(loss, expected, atol=1e-4, rtol=1e-5)
    loss.backward()
    assert head.weight_VD.grad[:2].abs().sum() > 0  # pushed down, since training counts them
    logp_NV = head.log_probs(features_ND)
    assert torch.isneginf(logp_NV[:, :2]).all()
    torch.testing.assert_close(logp_NV.exp().sum(-1), torch.ones(30))


def test_the_removed_mass_is_that_of_the_forbidden_words():
    torch.manual_seed(0)
    head = make_head("softmax", WIDTH, WORDS, (0, 1), mask=False)
    features_ND = torch.randn(300, WIDTH)
    p_NV = torch.softmax(features_ND @ head.weight_VD.T, dim=-1)
    assert head.removes_mass
    torch.testing.assert_close(head.removed_mass(features_ND), p_NV[:, :2].sum(-1))
    assert not make_head("softmax", WIDTH, WORDS, (0, 1)).removes_mass
    assert not make_head("softmax", WIDTH, WORDS, (), mask=False).removes_mass
