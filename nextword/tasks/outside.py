"""How readily a tagger finds spans: the score of the tag O is lowered as far as held-out spans gain by it.

Most words are outside all spans, so the most probable tags leave out words that are probably in some span,
but not surely in one with this label and these ends; F1 counts what is left out as much as what is wrong. It
is a threshold, as for several labels of a text: it changes which tags are chosen, not their probabilities.
"""

from __future__ import annotations

from nextword.data.spans import spans_of
from nextword.data.tagged import TaggedSentences, TagVocabulary
from nextword.evaluation.tagging import TagCounts
from nextword.models.tagger import Tagger
from nextword.tasks.taggers import by_length, chain_of

WORDS = 40_000  # held-out words that are tagged, at most
_TRIED = (0.5, 1.0, 1.5, 2.0)
_FEWEST = 100  # spans: with fewer, F1 says too little
_CLOSE = 0.005  # of F1: the smaller of two changes is taken


def f1_by_change(
    tagger: Tagger, examples: TaggedSentences, vocabulary: TagVocabulary
) -> dict[float, float] | None:
    """Return the span F1 for each change of O's score, 0 first; None where there are too few spans."""
    if sum(len(spans_of(tags, vocabulary.scheme)) for tags in examples.tags) < _FEWEST:
        return None
    batches = [
        (rows_B.tolist(), chain_of(tagger, examples.sentences.take(rows_B)))
        for rows_B in by_length(examples.sentences.lengths_N)
    ]
    found: dict[float, float] = {}
    for change in (0.0, *_TRIED):
        tagger.lowered = change
        counts = TagCounts(vocabulary.scheme, vocabulary.tags)
        for rows, chain in batches:
            for row, tags in zip(rows, tagger.best(chain).tolist(), strict=True):
                gold = examples.tags[row]
                counts.add(gold, [vocabulary.tags[tag] for tag in tags[: len(gold)]])
        found[change] = counts.report().span_f1 or 0.0
        if found[change] < max(found.values()) - _CLOSE:
            break
    return found


def choose(found: dict[float, float]) -> float:
    """Return the smallest change whose F1 is about the best."""
    best = max(found.values())
    return min(change for change, f1 in found.items() if f1 >= best - _CLOSE)
