"""Minimum Bayes risk: not the most likely text, but the one that agrees most with all others.

ŷ = argmax_y Σ_y' p(y') chrF(y, y'), over texts that are drawn from the model (Eikema & Aziz 2020), each
counting alike, or over the best of a beam, which count by their probability (Kumar & Byrne 2004).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nextword.core.contracts import Array, Tokenizer
from nextword.core.errors import ConfigError
from nextword.decode.beam import Beam
from nextword.decode.choose import GeneratedToken, Prompt, Sampling, Selection
from nextword.decode.chrf import chrf
from nextword.decode.limits import StopRule, Written
from nextword.decode.settings import DecodeSettings
from nextword.models.distributions import Floats


class MinimumRisk:
    """Generate candidates for every prompt, then give those of the least risk, best first."""

    def __init__(
        self,
        settings: DecodeSettings,
        jobs: Sequence[Prompt],
        stop: StopRule,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        if tokenizer is None:
            raise ConfigError("'decode' is mbr, which compares texts and needs a tokenizer; pass the run's")
        self.settings, self.tokenizer = settings, tokenizer
        self.size, self.jobs = settings.candidates, {}
        inner = []
        for job in jobs:  # the rows of a prompt's candidates do not depend on the batch
            first = job.row // settings.n_best * self.size
            self.jobs[first // self.size] = job
            inner.append(Prompt(first, job.prompt, job.source))
        self.found: dict[int, list[GeneratedToken]] = {}  # by the row of a candidate
        self.is_new = True
        self.inner = self._make(inner, stop)

    def _make(self, jobs: Sequence[Prompt], stop: StopRule) -> Beam | Sampling:
        if self.settings.candidates_from == "beam":
            changes = {"beam_size": self.size, "n_best": self.size, "groups": 1}
            return Beam(self.settings.model_copy(update=changes), jobs, stop)
        rows = [Prompt(job.row + at, job.prompt, job.source) for job in jobs for at in range(self.size)]
        return Sampling(self.settings, rows, stop)

    @staticmethod
    def texts(settings: DecodeSettings) -> int:
        """Return the n best."""
        return settings.n_best

    @staticmethod
    def width(settings: DecodeSettings) -> int:
        """Return the number of candidates."""
        return settings.candidates

    @property
    def watches(self) -> bool:
        """Tell whether the beam has a coverage penalty."""
        return isinstance(self.inner, Beam) and self.inner.watches

    def look(self, weights_RS: Floats) -> None:
        """Pass it to the beam."""
        if isinstance(self.inner, Beam):
            self.inner.look(weights_RS)

    @property
    def rows(self) -> Sequence[Written]:
        """The unfinished candidates; before the first step one for each prompt."""
        return self.inner.rows[:: self.size] if self._is_first_of_samples else self.inner.rows

    @property
    def _is_first_of_samples(self) -> bool:
        return self.is_new and isinstance(self.inner, Sampling)

    def choose(self, logp_RV: Array, allowed_RV: Array) -> Selection:
        """Continue the candidates; where all of a prompt are finished, give the best of them."""
        rows = np.arange(len(logp_RV))
        if self._is_first_of_samples:
            rows = np.repeat(rows, self.size)
            logp_RV, allowed_RV = logp_RV[rows], allowed_RV[rows]
        self.is_new = False
        choice = self.inner.choose(logp_RV, allowed_RV)
        return Selection(rows[choice.parents], choice.ids, self._taken(choice))

    def _taken(self, choice: Selection) -> list[GeneratedToken]:
        """Keep the tokens of candidates; return those of the prompts that are finished."""
        ended = set()
        for token in choice.tokens:
            self.found.setdefault(token.row, []).append(token)
            ended |= {token.row // self.size} if token.reason else set()
        tokens: list[GeneratedToken] = []
        for prompt in sorted(ended):
            own = range(prompt * self.size, (prompt + 1) * self.size)
            texts = [self.found[row] for row in own if row in self.found]
            if all(text[-1].reason for text in texts):
                tokens += self._best(self.jobs[prompt], texts)
                for row in own:
                    self.found.pop(row, None)
        return tokens

    def _best(self, job: Prompt, texts: Sequence[Sequence[GeneratedToken]]) -> list[GeneratedToken]:
        """Return the tokens of the texts of the least risk; the score of each is its expected chrF."""
        shown = [self.tokenizer.decode([token.id for token in text]) for text in texts]
        weights_N = np.ones(len(texts))
        if self.settings.candidates_from == "beam":
            logps_N = np.array([sum(token.logprob for token in text) for text in texts])
            weights_N = np.exp(logps_N - logps_N.max())
        gain_N = chrf(shown, shown) @ (weights_N / weights_N.sum())
        tokens: list[GeneratedToken] = []
        for rank, place in enumerate(_distinct(shown, gain_N)[: self.settings.n_best]):
            for token in texts[place]:
                score = float(gain_N[place]) if token.reason else None
                row = job.row + rank
                tokens.append(GeneratedToken(row, token.id, token.logprob, "", token.reason, score))
        return tokens


def _distinct(texts: Sequence[str], gain_N: Floats) -> list[int]:
    """Return the places of different texts, the best first; equal ones in their order."""
    seen: dict[str, int] = {}
    for place in np.argsort(-gain_N, kind="stable").tolist():
        seen.setdefault(texts[place], place)
    return list(seen.values())
