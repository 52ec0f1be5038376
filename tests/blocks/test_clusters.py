"""Factorized and adaptive embeddings, and the heads that share them."""

from __future__ import annotations

import pytest
import torch

from nextword.blocks.clusters import ClusterEmbedding, ClusterSettings
from nextword.blocks.embeddings import Factorized, FactorSettings
from nextword.blocks.heads import make_head
from nextword.blocks.softmaxes import Softmaxes, SoftmaxesSettings
from nextword.core.errors import ConfigError

V, D = 30, 16
CLUSTERS = ClusterSettings(starts=(4, 12), widths=(16, 8, 3))


def clustered():
    embedding = ClusterEmbedding(V, D, settings=CLUSTERS)
    embedding.prepare(torch.randperm(V).float(), (1,))
    return embedding


def dense(embedding):
    """The vectors of all tokens, one after another."""
    return embedding(torch.arange(V)[None])[0]


def test_the_product_of_factors_has_their_rank_and_scores_never_need_it():
    embedding = Factorized(V, D, settings=FactorSettings(size=5))
    head = make_head("softmax", D, V, (), embedding, bias=False)
    assert int(torch.linalg.matrix_rank(dense(embedding).detach())) <= 5
    features = torch.randn(7, D)
    torch.testing.assert_close(head.log_probs(features), (features @ dense(embedding).T).log_softmax(dim=-1))


def test_every_token_is_in_one_cluster_and_has_its_vector():
    embedding = clustered()
    rank_V, found = embedding.rank_V, dense(embedding)
    assert sorted(rank_V.tolist()) == list(range(V))
    assert int(rank_V[1]) == V - 1  # a token that never occurs comes last
    for token in range(V):
        rank = int(rank_V[token])
        cluster = 0 if rank < 4 else 1 if rank < 12 else 2
        vector = embedding.vectors[cluster][rank - (0, 4, 12)[cluster]]
        expected = vector if cluster == 0 else vector @ embedding.projects[cluster - 1]
        torch.testing.assert_close(found[token], expected)


def test_a_softmax_over_all_clusters_is_one_over_their_vectors():
    embedding = clustered()
    head = make_head("softmax", D, V, (1,), embedding)
    features = torch.randn(6, D)
    logits = features @ dense(embedding).T
    logits[:, 1] = -torch.inf
    torch.testing.assert_close(head.log_probs(features), logits.log_softmax(dim=-1))


def test_an_adaptive_softmax_shares_the_clusters_and_leaves_those_alone_that_do_not_occur():
    embedding = clustered()
    head = make_head("adaptive", D, V, (1,), embedding)
    head.prepare(torch.arange(V).float())
    features = torch.randn(6, D, dtype=torch.float64)
    embedding.double(), head.double()
    logp = head.log_probs(features)
    sums = logp.exp().sum(dim=-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-6, rtol=0.0)  # log-softmax is in float32
    frequent = torch.argsort(embedding.rank_V)[:4]
    head.loss(features, frequent[torch.randint(0, 4, (6,))]).backward()
    assert embedding.vectors[0].grad.abs().sum() > 0
    assert embedding.vectors[2].grad is None
    assert "bias" not in " ".join(name for name, _ in head.named_parameters())


def test_a_mixture_cannot_share_clusters_and_says_so():
    with pytest.raises(ConfigError, match="cannot share its vectors"):
        make_head("softmaxes", D, V, (), clustered())


def test_starts_and_widths_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="one width for each cluster"):
        ClusterEmbedding(V, D, settings=ClusterSettings(starts=(4,), widths=(16, 8, 3)))


def test_one_softmax_of_a_mixture_is_a_softmax_of_its_context():
    head = Softmaxes(D, V, settings=SoftmaxesSettings(count=1))
    features = torch.randn(5, D)
    expected = (torch.tanh(head.contexts(features)) @ head.weight_VD.T).log_softmax(dim=-1)
    torch.testing.assert_close(head.log_probs(features), expected)


def test_a_mixture_tells_more_contexts_apart_than_one_softmax():
    torch.manual_seed(0)
    features, words = torch.randn(64, 8, dtype=torch.float64) * 3, 64
    single = make_head("softmax", 8, words, (), bias=False).double()
    several = Softmaxes(8, words, settings=SoftmaxesSettings(count=5)).double()
    torch.nn.init.normal_(several.weight_VD)
    ranks = [
        int(torch.linalg.matrix_rank(head.log_probs(features).double().detach(), rtol=1e-5))
        for head in (single, several)
    ]
    assert ranks[0] <= 9 < 40 < ranks[1]


def test_the_loss_of_a_mixture_in_pieces_has_the_gradients_of_the_whole():
    head = Softmaxes(D, V, (1,), settings=SoftmaxesSettings(count=3)).double()
    features = torch.randn(7, D, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 2, 3, 5, 8, 9, 29])
    (-head.log_probs(features).gather(1, targets[:, None]).sum()).backward()
    expected = [features.grad.clone(), *(weight.grad.clone() for weight in head.parameters())]
    features.grad = None
    head.zero_grad()
    type(head).rows, before = 2, type(head).rows
    try:
        head.loss(features, targets).backward()
    finally:
        type(head).rows = before
    for found, wanted in zip([features.grad, *(w.grad for w in head.parameters())], expected, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def test_vectors_that_are_products_have_the_variance_of_plain_ones():
    for embedding in (Factorized(300, 200, settings=FactorSettings(size=50)), ClusterEmbedding(300, 200)):
        embedding.draw(1.0)
        vectors = embedding(torch.arange(300)[None]).detach()
        assert float(vectors.var()) == pytest.approx(1.0, rel=0.15)
