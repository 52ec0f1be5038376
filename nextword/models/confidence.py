"""How probable a predicted span is: that it begins here, ends here and has this label, all at once.

The smallest of its tags' probabilities says less: a span may go on past its last word, and its tags depend on
each other. Forward-backward gives the probability itself (Culotta & McCallum 2004).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nextword.blocks.crf import Chain, Lattice, TagRuns, run_probabilities
from nextword.data import spans
from nextword.data.spans import Name, Span


class SpanScorer:
    """Finds the probability of spans under a chain of tags in a scheme."""

    def __init__(self, tags: Sequence[str], scheme: Name) -> None:
        self.scheme = scheme
        self._ids = {tag: at for at, tag in enumerate(tags)}
        parsed = [spans.parse(tag) or spans.Tag("", "") for tag in tags]
        self._labels = [each.label for each in parsed]
        self._goes_on = [each.prefix == "I" for each in parsed]

    def probabilities(self, chain: Chain, passes: Lattice, found: Sequence[tuple[int, Span]]) -> list[float]:
        """Return the probability of each span; a span is given with the row of its sentence."""
        made = [0.0] * len(found)
        ways = [(at, *way) for at, (_, span) in enumerate(found) for way in self._ways(span)]
        if not ways:
            return made
        device = chain.lengths_B.device
        longest = max(len(tags) for _, tags, _, _ in ways)
        padded = [tags + [0] * (longest - len(tags)) for _, tags, _, _ in ways]
        p_N = run_probabilities(
            chain,
            passes,
            TagRuns(
                torch.tensor([found[at][0] for at, *_ in ways], device=device),
                torch.tensor([found[at][1].start for at, *_ in ways], device=device),
                torch.tensor(padded, device=device),
                torch.tensor([len(tags) for _, tags, _, _ in ways], device=device),
                torch.tensor([before for _, _, before, _ in ways], device=device),
                torch.tensor([after for _, _, _, after in ways], device=device),
            ),
        )
        for (at, *_), p in zip(ways, p_N.tolist(), strict=True):
            made[at] = min(1.0, made[at] + p)
        return made

    def _ways(self, span: Span) -> list[tuple[list[int], list[bool], list[bool]]]:
        """Return how a span can be written: tags, what may stand before them, and behind."""
        is_same = [label == span.label for label in self._labels]
        others = [not (same and on) for same, on in zip(is_same, self._goes_on, strict=True)]
        anything = [True] * len(is_same)
        written = [(spans.write(span, self.scheme), anything)]
        if self.scheme == "iob1":  # B- only behind a span of the same label, I- only behind another one
            written = [
                (spans.write(span, "iob1"), [not same for same in is_same]),
                (spans.write(span, "iob1", follows_same=True), is_same),
            ]
        return [
            ([self._ids[tag] for tag in tags], before, others)
            for tags, before in written
            if all(tag in self._ids for tag in tags) and not (before is is_same and span.start == 0)
        ]
