"""The probability of a span is the sum over all sequences of tags that mark exactly this span."""

from itertools import product

import pytest
import torch

from nextword.blocks import crf
from nextword.blocks.crf import FORBIDDEN, Chain
from nextword.data import spans
from nextword.data.spans import Span
from nextword.models.confidence import SpanScorer

TAGS = {
    "bio": ("O", "B-x", "I-x", "B-y", "I-y"),
    "iob1": ("O", "I-x", "B-x", "I-y", "B-y"),
    "bioes": ("O", "B-x", "I-x", "E-x", "S-x"),
    "bilou": ("O", "B-x", "I-x", "L-x", "U-x"),
}
LENGTH = 4


def legal_chain(tags, scheme, seed=0):
    draw = torch.Generator().manual_seed(seed)
    K = len(tags)

    def scores(*shape):
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    allowed = [torch.from_numpy(each) for each in spans.legal(tags, scheme)]
    parts = [scores(*each.shape).masked_fill(~each, FORBIDDEN) for each in allowed]
    return Chain(2 * scores(1, LENGTH, K), *parts, torch.tensor([LENGTH]))


@pytest.mark.parametrize("scheme", TAGS)
def test_equals_enumeration_for_every_span(scheme):
    tags = TAGS[scheme]
    chain = legal_chain(tags, scheme)
    every = torch.tensor(list(product(range(len(tags)), repeat=LENGTH)))
    wide = chain._replace(
        emissions_BTK=chain.emissions_BTK.expand(len(every), -1, -1),
        lengths_B=torch.full((len(every),), LENGTH),
    )
    p = crf.log_likelihood(wide, every).exp().tolist()
    expected: dict[Span, float] = {}
    for ids, each in zip(every.tolist(), p, strict=True):
        for span in spans.spans_of([tags[at] for at in ids], scheme) if each > 1e-12 else []:
            expected[span] = expected.get(span, 0.0) + each
    labels = {span.label for span in expected}
    asked = [
        Span(start, end, label)
        for label in sorted(labels)
        for start in range(LENGTH)
        for end in range(start + 1, LENGTH + 1)
    ]
    found = SpanScorer(tags, scheme).probabilities(chain, crf.lattice(chain), [(0, span) for span in asked])
    assert len(asked) == len(expected)
    for span, value in zip(asked, found, strict=True):
        assert value == pytest.approx(expected[span], abs=1e-9), span


def test_a_span_that_may_go_on_is_less_certain_than_its_tags():
    chain = Chain(torch.zeros(1, 2, 3), torch.zeros(3, 3), torch.zeros(3), torch.zeros(3), torch.tensor([2]))
    (found,) = SpanScorer(("O", "B-x", "I-x"), "bio").probabilities(
        chain, crf.lattice(chain), [(0, Span(0, 1, "x"))]
    )
    assert float(crf.marginals(chain)[0, 0, 1]) == pytest.approx(1 / 3)
    assert found == pytest.approx(1 / 3 * 2 / 3)
