"""The tree of a beam search: what was kept at each step, what was dropped, and the best text.

[MAUSAM "Neural Language Model: Greedy Decoding"]. The search is the one that `generate` does.
"""

from __future__ import annotations

import numpy as np

from nextword.core.contracts import END, LanguageModel, is_probability
from nextword.decode.generate import Generated
from nextword.decode.settings import DecodeSettings
from nextword.decode.tree import Branch, search_tree
from nextword.drawing.page import Table
from nextword.drawing.tree import Node, tree
from nextword.probe.pairs import PairSubject
from nextword.probe.result import Figure, ProbeResult
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import NEWLINE, Subject

_PROMPT = 24  # characters of a prompt that are shown


class OfBeam:
    """How a beam search proceeds."""

    about = "the search tree of beam decoding; --text is the prompt, or the source of a translation"
    needs = "models that give probabilities"

    def fits(self, subject: Subject) -> bool:
        """Accept every model that gives probabilities."""
        return isinstance(subject.model, LanguageModel) and is_probability(subject.model)

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Search from the prompt, and draw what was kept."""
        is_pair = isinstance(subject, PairSubject)
        prompt = subject.sides[0] if isinstance(subject, PairSubject) else subject.given or ""
        shown = prompt if len(prompt) <= _PROMPT else "…" + prompt[-_PROMPT:]
        shown = shown.replace("\n", NEWLINE)
        asked = DecodeSettings(
            decode="beam",
            beam_size=settings.beam_size,
            n_best=settings.beam_size,
            max_tokens=settings.max_tokens,
        )
        ids = [] if is_pair else [int(i) for i in subject.tokenizer.encode(prompt)]
        source = subject.source if isinstance(subject, PairSubject) else None
        texts, branches = search_tree(subject.model, ids, asked, subject.tokenizer, source)
        nodes = nodes_of(subject, texts, branches)
        rows = tuple(
            (text.text.strip(), text.logprob, float(np.exp(text.logprob)), text.reason) for text in texts
        )
        title = f"A beam search of {settings.beam_size}: {subject.name}"
        best = f"'{text}'" if (text := texts[0].text.strip()) else "empty: it ends at once"
        return ProbeResult(
            "beam", subject.name, title,
            f"After '{shown}' the best of {len(texts)} finished texts is {best} (log p "
            f"{texts[0].logprob:.2f}); "
            f"{len(nodes)} tokens were kept on the way.",
            'MAUSAM "Neural Language Model: Greedy Decoding"',
            {
                "parent_N": np.array([node.parent for node in nodes]),
                "word_N": np.array([branch.id for branch in branches]),
                "logp_N": np.array([branch.logprob for branch in branches]),
            },
            {"N": [node.text for node in nodes]},
            (Figure(
                "The tree of the search: every token that was kept, with its probability",
                tree(nodes, shown or "<s>", title, "step"),
                "From left to right, one token per step; the number below a token is its probability "
                "after what stands before "
                "it. At each step only the best continue, over all branches together.",
                Table(("text", "log p", "p", "why it ended"), rows),
            ),),
        )  # fmt: skip


def nodes_of(subject: Subject, texts: list[Generated], branches: list[Branch]) -> list[Node]:
    """Return every token of the tree as it is drawn."""
    ends, best = {text.ids for text in texts}, texts[0].ids
    return [
        Node(branch.parent, _shown(subject, branch.id), f"{np.exp(branch.logprob):.2g}",
             branch.path == best[: len(branch.path)], branch.path in ends)
        for branch in branches
    ]  # fmt: skip


def _shown(subject: Subject, word: int) -> str:
    return NEWLINE if word == END and subject.tokenizer.unit == "line" else subject.tokenizer.piece(word)
