"""The tree of a beam search: what was kept at each step, what was dropped, and the best text.

[MAUSAM "Neural Language Model: Greedy Decoding"]. The search is the one that `generate` does; the tree is
recorded from the tokens that the model reads and the rows that are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import END, Array, LanguageModel, State, is_probability
from nextword.decode.generate import Generated, collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.drawing.page import Table
from nextword.drawing.tree import Node, tree
from nextword.models.distributions import as_numpy
from nextword.probe.pairs import PairSubject
from nextword.probe.result import Figure, ProbeResult
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import NEWLINE, Quiet, Subject

_PROMPT = 24  # characters of a prompt that are shown
Floats = np.ndarray[Any, np.dtype[np.float64]]


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
        watched = Watched(subject.model)
        asked = DecodeSettings(
            decode="beam",
            beam_size=settings.beam_size,
            n_best=settings.beam_size,
            max_tokens=settings.max_tokens,
        )
        ids = [] if is_pair else [int(i) for i in subject.tokenizer.encode(prompt)]
        source = subject.source if isinstance(subject, PairSubject) else None
        texts = collect(generate(watched, [ids], asked, subject.tokenizer, source))
        nodes, words, logps = nodes_of(subject, watched, texts)
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
                "parent_N": np.array([node.parent for node in nodes]), "word_N": np.array(words),
                "logp_N": np.array(logps),
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


class Watched(Quiet):
    """A model that records which rows are kept and which tokens are read: the tree of a search."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self.steps: list[tuple[list[int], list[int]]] = []  # of each step the parents' rows, and the tokens
        self.logps: list[Floats] = []  # before each step, ``logp_RV``
        self._rows: list[int] | None = None

    def next(self, state: State) -> Array:
        """Note the first distribution."""
        found = self.model.next(state)
        self.logps.append(as_numpy(found, np.float64))
        return found

    def reorder(self, state: State, rows_B: Array) -> State:
        """Note which rows continue."""
        self._rows = [int(row) for row in rows_B]
        return self.model.reorder(state, rows_B)

    def step(self, ids_B: Array, state: State) -> tuple[Array, State]:
        """Note which tokens they read."""
        words = [int(word) for word in ids_B]
        self.steps.append((self._rows if self._rows is not None else list(range(len(words))), words))
        self._rows = None
        found, after = self.model.step(ids_B, state)
        self.logps.append(as_numpy(found, np.float64))
        return found, after


def nodes_of(
    subject: Subject, watched: Watched, texts: list[Generated]
) -> tuple[list[Node], list[int], list[float]]:
    """Return all tokens that were kept, parents first, and the last tokens of the finished texts."""
    paths: dict[tuple[int, ...], float] = {}  # every kept path, and log p of its last token
    rows: list[tuple[int, ...]] = [()]
    for step, (parents, words) in enumerate(watched.steps):
        logp_RV = watched.logps[step]
        after = []
        for parent, word in zip(parents, words, strict=True):
            path = (*rows[parent], word)
            paths[path] = float(logp_RV[parent, word])
            after.append(path)
        rows = after
    for text in texts:
        for length in range(1, len(text.ids) + 1):
            paths.setdefault(tuple(text.ids[:length]), text.logprobs[length - 1])
    ends, best = {text.ids for text in texts}, texts[0].ids
    order = sorted(paths, key=lambda path: (len(path), [-paths[path[: n + 1]] for n in range(len(path))]))
    place = {path: number for number, path in enumerate(order)}
    nodes = [
        Node(place.get(path[:-1], -1), _shown(subject, path[-1]), f"{np.exp(paths[path]):.2g}",
             path == best[: len(path)], path in ends)
        for path in order
    ]  # fmt: skip
    return nodes, [path[-1] for path in order], [paths[path] for path in order]


def _shown(subject: Subject, word: int) -> str:
    return NEWLINE if word == END and subject.tokenizer.unit == "line" else subject.tokenizer.piece(word)
