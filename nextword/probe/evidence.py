"""The evidence for a probability: counts, the order used, the discount, the backoff weight.

[XMU "n-gram language models", "Sparsity problems of n-gram models"]: p(w | context) comes from the longest
n-gram that was seen; where none was, from a shorter one times the weights of the contexts that are left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nextword.core.contracts import START, PieceTokenizer
from nextword.drawing.coloured import coloured
from nextword.drawing.heat import Names, heat
from nextword.drawing.page import Table
from nextword.mixtures.mixture import Mixture
from nextword.models.distributions import as_numpy
from nextword.ngram.model import NgramModel
from nextword.ngram.unbounded import UnboundedModel
from nextword.probe.recount import FREQUENCIES, Counted, Recounter, followers
from nextword.probe.result import Figure, ProbeResult, row_of
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject, TokenRow, joined

Array = np.ndarray[Any, np.dtype[Any]]
_TOKENS = 60
_SLIDE = 'XMU "Sparsity problems of n-gram models"'


@dataclass(frozen=True)
class EvidenceSource:
    """Where the probability of one token comes from."""

    word: str
    p: float
    order: int  # tokens of the n-gram that gave it, itself included
    context: str  # the tokens before it in that n-gram
    count: int | None  # how often the n-gram was seen; None: the arrays do not say
    total: int | None  # how often its context was
    kinds: int  # different tokens that were seen after the context
    discount: float | None  # what was subtracted from the count
    weight: float  # the product of the backoff weights of the longer contexts
    skipped: int  # contexts that were seen, but not with this token
    is_adjusted: bool = False  # the counts are Kneser-Ney's: of the different tokens before the n-gram

    def __str__(self) -> str:
        if self.order == 1:
            found = "1-gram: never seen after the words before it"
        elif self.count is None or self.total is None:
            found = f"{self.order}-gram: seen after '{self.context}'"
        else:
            found = f"{self.order}-gram: {self.count:,} of {self.total:,} times after '{self.context}'"
        less = f", less a discount of {self.discount:.2f}" if self.discount else ""
        back = (
            f", backoff weight {self.weight:.2g} ({_contexts(self.skipped)} without it)"
            if self.skipped
            else ""
        )
        return f"{found}{less}{back}"


class OfEvidence:
    """Why a count model predicts what it does."""

    about = "counts, order used, discount and backoff weight behind each word; of a mixture each part's share"
    needs = "count models and mixtures (ngram, unbounded, mixture)"

    def fits(self, subject: Subject) -> bool:
        """Accept models with counts, and mixtures of anything."""
        return isinstance(subject.model, NgramModel | UnboundedModel | Mixture)

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Show it token by token."""
        tokens = settings.tokens or _TOKENS
        if isinstance(subject.model, Mixture):
            return _shares(subject, tokens)
        if isinstance(subject.model, UnboundedModel):
            return _matches(subject, subject.model, tokens)
        rows = subject.rows(tokens)
        found = [source for row in sources(subject, rows) for source in row]
        return _seen(subject, rows, found)


def _contexts(count: int) -> str:
    return f"{count} longer context{'s' if count > 1 else ''} seen"


def sources(subject: Subject, rows: list[TokenRow]) -> list[list[EvidenceSource]]:
    """Find the source of every token of some rows that begin with START."""
    assert isinstance(subject.model, NgramModel)
    recounter = Recounter(subject.model, subject.facts.get("tokens"), subject.facts.get("settings"))
    return [_row(recounter, row) for row in rows]


def sources_after(subject: Subject, read: Sequence[int], ids: Sequence[int]) -> list[EvidenceSource]:
    """Find the source of every token that comes after a prompt, given as ids without START."""
    assert isinstance(subject.model, NgramModel)
    recounter = Recounter(subject.model, subject.facts.get("tokens"), subject.facts.get("settings"))
    row = subject.row_of((START, *read, *ids))
    model, found = recounter.model, []
    state = model.score(row.ids_T[None, 1 : 1 + len(read)], np.array([len(read)]), model.start(1))[1]
    for t in range(1 + len(read), len(row)):
        source = _source(recounter, row, t, state)
        if isinstance(subject.tokenizer, PieceTokenizer):  # pieces are read together, words apart
            before = range(t + 1 - source.order, t)
            context = "".join("<s>" if row.ids_T[i] == START else row.pieces[i] for i in before)
            source = replace(source, context=context)
        found.append(source)
        state = model.score(row.ids_T[None, t : t + 1], np.array([1]), state)[1]
    return found


def _row(recounter: Recounter, row: TokenRow) -> list[EvidenceSource]:
    model = recounter.model
    state, found = model.start(1), []
    for t in range(1, len(row)):
        found.append(_source(recounter, row, t, state))
        state = model.score(row.ids_T[None, t : t + 1], np.array([1]), state)[1]
    return found


def _source(recounter: Recounter, row: TokenRow, t: int, state: Any) -> EvidenceSource:
    """Take the longest context seen with the token; those seen without it give their weights."""
    model, word = recounter.model, int(row.ids_T[t])
    p = float(np.exp(model.score(row.ids_T[None, t : t + 1], np.array([1]), state)[0][0, 0]))
    weight, skipped = 1.0, 0
    for length in used_lengths(model, t):
        node = int(state.nodes_BN[0, length - 1])
        if node < 0:
            continue
        words_F, _, gamma = followers(model, length, node)
        place = np.flatnonzero(words_F == word)
        if len(place):
            count, total, taken = _at(recounter.count(row.ids_T[t - length : t]), int(place[0]))
            context, kinds = " ".join(row.labels[t - length : t]), len(words_F)
            is_adjusted = "kneser-ney" in model.smoothing and length + 1 < model.order
            return EvidenceSource(
                row.labels[t],
                p,
                length + 1,
                context,
                count,
                total,
                kinds,
                taken,
                weight,
                skipped,
                is_adjusted,
            )
        weight, skipped = weight * gamma, skipped + 1
    count = recounter.frequency([word]) if model.smoothing in FREQUENCIES else None
    return EvidenceSource(
        row.labels[t], p, 1, "", count, recounter.tokens, model.vocab_size, None, weight, skipped
    )


def used_lengths(model: NgramModel, t: int) -> list[int]:
    """Return the contexts that are used, the longest first; some smoothings use only the whole one."""
    longest = min(t, model.order - 1)
    if model.trie.fallback == "shorter":
        return list(range(longest, 0, -1))
    return [longest] if longest else []


def _at(counted: Counted | None, place: int) -> tuple[int | None, int | None, float | None]:
    if counted is None:
        return None, None, None
    return int(counted.counts_F[place]), counted.total, float(counted.discounts_F[place])


def _seen(subject: Subject, rows: list[TokenRow], found: list[EvidenceSource]) -> ProbeResult:
    assert isinstance(subject.model, NgramModel)
    orders = np.array([source.order for source in found])
    text = joined(rows)
    keep = text.ids_T != START
    pieces = [piece for piece, kept in zip(text.pieces, keep, strict=True) if kept]
    title = "How many words the n-gram had that gave each word its probability"
    table = tuple(
        (
            each.word,
            each.p,
            each.order,
            each.context,
            each.count,
            each.total,
            each.kinds,
            each.discount,
            each.weight,
        )
        for each in found
    )
    most = subject.model.order
    is_adjusted = "kneser-ney" in subject.model.smoothing
    note = (
        " Below the highest order Kneser-Ney counts the different words before an n-gram."
        if is_adjusted
        else ""
    )
    picture = Figure(
        title,
        coloured(pieces, orders.tolist(), title, f"words of the n-gram (1 … {most})", (0.0, float(most))),
        f"The redder a word, the longer the n-gram that was seen in training and gave its "
        f"probability. Count: how often it was seen, of how often its context was; kinds: different words "
        f"after that context.{note}",
    )  # fmt: skip
    numbers = Table(
        ("word", "p", "order", "after", "count", "of", "kinds", "discount", "backoff weight"), table
    )
    arrays = {
        "p_N": np.array([each.p for each in found]), "order_N": orders,
        "weight_N": np.array([each.weight for each in found]),
        "count_N": np.array([np.nan if each.count is None else each.count for each in found]),
        "total_N": np.array([np.nan if each.total is None else each.total for each in found]),
    }  # fmt: skip
    backed = int((np.array([each.skipped for each in found]) > 0).sum())
    return ProbeResult(
        "evidence", subject.name, f"The evidence behind each word: {subject.name}",
        f"The mean order is {orders.mean():.2f} of {subject.model.order} ({subject.model.smoothing}); "
        f"{backed} of "
        f"{len(found)} words were not seen after the longest context that was, and paid its backoff weight.",
        _SLIDE, arrays, {"N": [each.word for each in found]}, (picture, numbers),
    )  # fmt: skip


def _matches(subject: Subject, model: UnboundedModel, tokens: int) -> ProbeResult:
    """Return the longest match in the training text before every token."""
    text = joined(subject.rows(tokens))
    found = model.match_packed(text.ids_T)
    keep = text.ids_T != START
    logp = model.score_packed(text.ids_T)[keep]
    lengths, totals, hits = (np.asarray(each)[keep] for each in (found.lengths, found.totals, found.hits))
    labels = [label for label, kept in zip(text.labels, keep, strict=True) if kept]
    pieces = [piece for piece, kept in zip(text.pieces, keep, strict=True) if kept]
    D = [model.discounts[min(int(n), model.levels + 1) - 1] if n else None for n in lengths]
    rows = tuple(
        (label, float(np.exp(p)), int(n), int(hit), int(total), d)
        for label, p, n, hit, total, d in zip(labels, logp, lengths, hits, totals, D, strict=True)
    )
    title = "How many words before each word are in the training text, too"
    picture = Figure(
        title, coloured(pieces, lengths.tolist(), title, "words of the longest match"),
        "The redder a word, the longer the piece of training text that the words before it repeat.",
        Table(("word", "p", "match, words", "followed by it", "of", "discount"), rows),
    )  # fmt: skip
    return ProbeResult(
        "evidence", subject.name, f"The evidence behind each word: {subject.name}",
        f"The words before a word repeat {lengths.mean():.2f} words of the training text on average, "
        f"{int(lengths.max())} at most; in {100 * (hits > 0).mean():.0f} % of the places the word had "
        "followed them.",
        _SLIDE, {"p_N": np.exp(logp), "length_N": lengths, "total_N": totals, "hits_N": hits}, {"N": labels},
        (picture,),
    )  # fmt: skip


def shares(subject: Subject, tokens: int) -> tuple[list[str], Array, Array]:
    """Return the tokens, log p of each by every part, and each part's share of the mixture's p."""
    assert isinstance(subject.model, Mixture)
    text = subject.text(tokens)
    scored: list[Array] = []
    labels: list[str] = []
    for part in subject.parts():
        part.given = text
        rows = part.rows(2 * tokens)
        scored.append(np.concatenate([_logp(part, row) for row in rows]))
        labels = labels or [label for row in rows for label in row.labels[1:]]
    count = min(tokens, *map(len, scored))
    logp_KN = np.stack([each[:count] for each in scored])
    with np.errstate(divide="ignore"):
        weighted = logp_KN + np.log(subject.model.weights)[:, None]
    share_KN = np.exp(weighted - np.logaddexp.reduce(weighted, axis=0))
    return labels[:count], logp_KN, share_KN


def _logp(subject: Subject, row: TokenRow) -> Array:
    """Return log p of every token of a row after its START."""
    logp = subject.model.score(row.ids_T[None, 1:], np.array([len(row) - 1]))[0]
    return as_numpy(logp, np.float64)[0]


def _shares(subject: Subject, tokens: int) -> ProbeResult:
    labels, logp_KN, share_KN = shares(subject, tokens)
    assert isinstance(subject.model, Mixture)
    weights = subject.model.weights
    names = [
        f"{part.described} (weight {weight:.2f})"
        for part, weight in zip(subject.parts(), weights, strict=True)
    ]
    title = "Whose probability it is: each part's share of the mixture's p"
    shown = min(len(labels), 40)
    cells = np.concatenate([share_KN, np.exp(logp_KN)]).T.tolist()
    rows = tuple(row_of(label, values) for label, values in zip(labels, cells, strict=True))
    heads = (
        "word",
        *(f"share of {name}" for name in names),
        *(f"p of {part.described}" for part in subject.parts()),
    )
    picture = Figure(
        title,
        heat(share_KN[:, :shown], Names("part", names), Names("token that is predicted", labels[:shown]),
             title, "share of the mixture's probability", (0.0, 1.0)),
        "Columns sum to 1: where a part gives a word more than the others do, most of the mixture's "
        f"probability is its. The first {shown} of {len(labels)} tokens.",
        Table(heads, rows),
    )  # fmt: skip
    summary = ", ".join(
        f"{name}: {100 * share:.0f} %" for name, share in zip(names, share_KN.mean(axis=1), strict=True)
    )
    return ProbeResult(
        "evidence", subject.name, f"The parts behind each word: {subject.name}",
        f"The mean share of each part: {summary}.",
        _SLIDE, {"logp_KN": logp_KN, "share_KN": share_KN, "weights_K": np.asarray(weights)},
        {"K": names, "N": labels}, (picture,),
    )  # fmt: skip
