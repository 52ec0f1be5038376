"""The chain of tags: partition, marginals and Viterbi against enumeration, gradients, and pytorch-crf."""

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchcrf import CRF

from nextword.blocks import crf
from nextword.blocks.crf import FORBIDDEN, Chain, TransitionScores


def random_chain(lengths, tags, seed=0, dtype=torch.float64):
    made = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return 2 * torch.randn(*shape, generator=made, dtype=dtype)

    T = max(lengths)
    return Chain(draw(len(lengths), T, tags), draw(tags, tags), draw(tags), draw(tags), torch.tensor(lengths))


def enumerated(chain, row):
    """Every sequence of tags of a row with its score, added up one by one."""
    length, tags = int(chain.lengths_B[row]), chain.emissions_BTK.shape[2]
    found = {}
    for y in product(range(tags), repeat=length):
        score = chain.first_K[y[0]] + chain.last_K[y[-1]]
        score = score + sum(chain.emissions_BTK[row, t, tag] for t, tag in enumerate(y))
        found[y] = float(score + sum(chain.transitions_KK[a, b] for a, b in pairwise(y)))
    return found


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    tags=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_everything_equals_enumeration(lengths, tags, seed):
    chain = random_chain(lengths, tags, seed)
    partition, marginals = crf.log_partition(chain), crf.marginals(chain)
    best, scores = crf.viterbi(chain)
    for row, length in enumerate(lengths):
        every = enumerated(chain, row)
        values = torch.tensor(list(every.values()), dtype=torch.float64)
        assert float(partition[row]) == pytest.approx(float(values.logsumexp(0)), abs=1e-9)
        top = max(every, key=every.get)
        assert float(scores[row]) == pytest.approx(every[top], abs=1e-9)
        assert every[tuple(best[row, :length].tolist())] == pytest.approx(every[top], abs=1e-9)
        p = (values - values.logsumexp(0)).exp()
        for t in range(length):
            for tag in range(tags):
                there = sum(float(p[at]) for at, y in enumerate(every) if y[t] == tag)
                assert float(marginals[row, t, tag]) == pytest.approx(there, abs=1e-9)
        assert not marginals[row, length:].any()
        assert not best[row, length:].any()


def test_probabilities_of_all_sequences_sum_to_one():
    chain = random_chain([4], 3)
    every = torch.tensor(list(product(range(3), repeat=4)))
    chains = Chain(chain.emissions_BTK.expand(len(every), -1, -1), *chain[1:4], torch.full((len(every),), 4))
    assert float(crf.log_likelihood(chains, every).exp().sum()) == pytest.approx(1.0, abs=1e-12)


def test_padding_and_batch_size_change_nothing():
    chain = random_chain([5, 2, 1, 4], 3)
    tags = torch.randint(0, 3, (4, 5), generator=torch.Generator().manual_seed(3))
    poisoned = chain.emissions_BTK.clone()
    poisoned[~chain.real_BT] = 1e6
    other = chain._replace(emissions_BTK=poisoned)
    assert torch.equal(crf.log_partition(chain), crf.log_partition(other))
    assert torch.equal(crf.viterbi(chain)[0], crf.viterbi(other)[0])
    for row, length in enumerate([5, 2, 1, 4]):
        alone = Chain(chain.emissions_BTK[row : row + 1, :length], *chain[1:4], torch.tensor([length]))
        own = crf.log_likelihood(alone, tags[row : row + 1, :length])
        assert float(own) == pytest.approx(float(crf.log_likelihood(chain, tags)[row]), abs=1e-12)


def test_gradients_are_right():
    chain = random_chain([3, 2], 3)
    tags = torch.tensor([[0, 2, 1], [1, 1, 0]])
    parts = [part.requires_grad_() for part in chain[:4]]
    assert torch.autograd.gradcheck(
        lambda *given: crf.log_likelihood(Chain(*given, chain.lengths_B), tags), parts
    )


def test_the_gradient_of_the_partition_is_the_marginals():
    chain = random_chain([4, 3], 3)
    chain.emissions_BTK.requires_grad_()
    (gradient,) = torch.autograd.grad(crf.log_partition(chain).sum(), chain.emissions_BTK)
    assert torch.allclose(gradient, crf.marginals(chain).detach(), atol=1e-10)


def test_equals_pytorch_crf():
    lengths = [6, 4, 1]
    chain = random_chain(lengths, 5, dtype=torch.float32)
    peer = CRF(5, batch_first=True)
    with torch.no_grad():
        peer.start_transitions.copy_(chain.first_K)
        peer.end_transitions.copy_(chain.last_K)
        peer.transitions.copy_(chain.transitions_KK)
    tags = torch.randint(0, 5, (3, 6), generator=torch.Generator().manual_seed(1))
    theirs = peer(chain.emissions_BTK, tags, mask=chain.real_BT, reduction="none")
    assert torch.allclose(crf.log_likelihood(chain, tags), theirs, atol=1e-4)
    best = crf.viterbi(chain)[0]
    assert peer.decode(chain.emissions_BTK, mask=chain.real_BT) == [
        best[row, :length].tolist() for row, length in enumerate(lengths)
    ]


def test_forbidden_transitions_are_never_taken_and_do_not_learn():
    legal = torch.tensor([[True, False], [True, True]])
    scores = TransitionScores(legal, torch.tensor([True, True]), torch.tensor([True, True]))
    emissions = torch.tensor([[[5.0, 0.0], [0.0, 5.0], [0.0, 5.0]]])
    chain = scores.chain(emissions, torch.tensor([3]))
    assert chain.transitions_KK[0, 1] == FORBIDDEN
    tags = crf.viterbi(chain)[0][0].tolist()
    assert (0, 1) not in list(pairwise(tags))
    crf.log_partition(chain).sum().backward()
    assert scores.pairs_KK.grad[0, 1] == 0
    assert float(crf.marginals(chain)[0].detach().sum(dim=1).max()) == pytest.approx(1.0)


def test_an_empty_row_counts_nothing():
    chain = random_chain([3, 0], 2)
    assert float(crf.log_partition(chain)[1]) == 0
    assert float(crf.log_likelihood(chain, torch.zeros(2, 3, dtype=torch.int64))[1]) == 0


@settings(max_examples=25, deadline=None)
@given(length=st.integers(1, 5), tags=st.integers(1, 3), seed=st.integers(0, 1000), data=st.data())
def test_probability_of_a_run_of_tags_equals_enumeration(length, tags, seed, data):
    chain = random_chain([length, length + 1], tags, seed)
    start = data.draw(st.integers(0, length - 1))
    run = data.draw(st.lists(st.integers(0, tags - 1), min_size=1, max_size=length - start))
    masks = st.lists(st.booleans(), min_size=tags, max_size=tags)
    before, after = data.draw(masks), data.draw(masks)
    row = data.draw(st.integers(0, 1))
    found = crf.run_probabilities(
        chain,
        crf.lattice(chain),
        crf.TagRuns(
            torch.tensor([row]), torch.tensor([start]), torch.tensor([[*run, 0]]), torch.tensor([len(run)]),
            torch.tensor([before]), torch.tensor([after]),
        ),
    )  # fmt: skip
    every = enumerated(chain, row)
    scores = torch.tensor(list(every.values()), dtype=torch.float64)
    p, end = (scores - scores.logsumexp(0)).exp().tolist(), start + len(run)
    there = sum(
        each
        for y, each in zip(every, p, strict=True)
        if list(y[start:end]) == run
        and (start == 0 or before[y[start - 1]])
        and (end == len(y) or after[y[end]])
    )
    assert float(found) == pytest.approx(there, abs=1e-9)
