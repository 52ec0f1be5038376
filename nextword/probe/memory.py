"""What a memory adds: its share of each token's probability, and the places that it remembers.

"External memory" [MAUSAM "What is missing in Transformers?"]: Grave et al. 2017 (cache), Khandelwal et al.
2020 (neighbours). Unlike weights, what a memory looks up can be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import END, Carrier
from nextword.drawing.coloured import coloured
from nextword.drawing.page import Table
from nextword.mixtures.evidence import advance, explain
from nextword.mixtures.memory import Part, WithMemories, Witness
from nextword.mixtures.mixture import Mixture
from nextword.mixtures.recent import RecentWords
from nextword.probe.result import Figure, ProbeResult
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject, TokenRow

_TOKENS = 80
_CONTEXT = 5  # tokens before a place that are shown


class OfMemory:
    """Which tokens come from a memory, and from where in it."""

    about = "how much of each word's probability a memory gives, and the cached words or neighbours behind it"
    needs = "models with a memory (made by nextword mix with --cache, --recent or --neighbours)"

    def fits(self, subject: Subject) -> bool:
        """Accept networks with memories, and mixtures that have one."""
        return has_memory(subject.model)

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Show it token by token, as the text is read."""
        row = subject.row(settings.tokens or _TOKENS)
        found = parts_of(subject, row)
        names = [part.name for part in found[0]]
        share_KN = np.array([[part.share for part in parts] for parts in found]).T
        p_N = share_KN.sum(axis=0)
        is_memory_K = np.array([name in ("cache", "recent", "neighbours") for name in names])
        memory_N = share_KN[is_memory_K].sum(axis=0) / np.maximum(p_N, 1e-300)
        rows = tuple(
            (row.labels[t + 1], float(p_N[t]), float(memory_N[t]), _strongest(found[t], row, t, subject))
            for t in range(len(found))
        )
        title = "How much of each word's probability comes from memory"
        picture = Figure(
            title,
            coloured(row.pieces[1:], memory_N.tolist(), title, "share from memory", (0.0, 1.0)),
            "The redder a word, the more of its probability comes from what was remembered, and not from "
            "weights or counts. The table has the strongest place behind each word.",
            Table(("word", "p", "share from memory", "strongest place"), rows),
        )  # fmt: skip
        return ProbeResult(
            "memory", subject.name, f"What is remembered: {subject.name}",
            f"Memory gives {100 * memory_N.mean():.0f} % of the probability of a word on average, and more "
            f"than half of it to {int((memory_N > 0.5).sum())} of {len(memory_N)} words.",
            'MAUSAM "What is missing in Transformers?"',
            {"share_KN": share_KN, "p_N": p_N, "memory_N": memory_N},
            {"K": names, "N": list(row.labels[1:])}, (picture,),
        )  # fmt: skip


def has_memory(model: Any) -> bool:
    """Tell whether a model remembers anything of its own, or a part of it does."""
    if isinstance(model, Mixture):
        return any(has_memory(part) for part in model.models)
    return isinstance(model, RecentWords | WithMemories)


def parts_of(subject: Subject, row: TokenRow) -> list[list[Part]]:
    """Return what every part predicts for each token of a row after its START."""
    model = subject.model
    state, found = model.start(1), []
    for word in row.ids_T[1:].tolist():
        found.append(explain(model, state, word, 1))
        state = advance(model, word, state)
        if word == END and isinstance(model, Carrier):
            state = model.carry(state)
    return found


def _strongest(parts: list[Part], row: TokenRow, t: int, subject: Subject) -> str:
    """Return the place that adds most to a token, in words."""
    seen = [(part.weight * witness.weight, witness) for part in parts for witness in part.witnesses]
    seen = [(weight, witness) for weight, witness in seen if witness.back or witness.place is not None]
    if not seen:
        return ""
    weight, witness = max(seen, key=lambda pair: pair[0])
    return f"{weight:.4f} {_place(witness, row, t, subject)}"


def _place(witness: Witness, row: TokenRow, t: int, subject: Subject) -> str:
    if witness.back is not None:
        at = t + 1 - witness.back
        return f"{' '.join(row.labels[max(0, at - _CONTEXT) : at])}, {witness.back:,} tokens ago"
    context = " ".join(subject.tokenizer.piece(word) for word in witness.context[-_CONTEXT:])
    return f"{context}, token {witness.place:,} of the stored text"
