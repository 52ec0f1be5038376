"""Beam search: the K best hypotheses are extended in parallel [MAUSAM "Beam search"].

Exact search over all texts is prohibitive; a beam keeps K, and one that is as wide as the tree is exact.
Finished hypotheses are kept in a pool of their own, so that they never displace unfinished ones. Their score
is log p / ((5 + length) / 6)^alpha + beta · Σ_i log min(Σ_j a_ij, 1), a_ij being how much token j looked at
source token i (Wu et al. 2016). Letters: P prompt, G group, W hypothesis of a group, C candidate; a row R is
one of (P, G, W).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import END, Array, Tokenizer
from nextword.decode.choose import GeneratedToken, Prompt, Selection
from nextword.decode.limits import MaxTokens, StopRule, Written
from nextword.decode.peaks import at, top
from nextword.decode.sampling import Bools, Ints
from nextword.decode.settings import DecodeSettings
from nextword.decode.trail import Candidates, Finished, Pool, Trail
from nextword.models.distributions import Floats

_BRANCHED = 12  # hypotheses up to which they share one tree of keys: each looks at the nodes of all
_LEAST = 1e-9  # of attention to a source token: log 0 would hide all others


class Beam:
    """Keep the K best of every prompt, all in whole arrays; give the n best when a search is over.

    In groups (Vijayakumar et al. 2016), each of K / G hypotheses, a token loses `diversity` for every time
    that an earlier group uses it in the same step. Every prompt has equally many rows; where hypotheses are
    missing, a row repeats another with a total of -inf.
    """

    def __init__(
        self,
        settings: DecodeSettings,
        jobs: Sequence[Prompt],
        stop: StopRule,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self.settings, self.stop, self.jobs = settings, stop, list(jobs)
        self.size = settings.beam_size // settings.groups
        self.watches = settings.coverage_penalty > 0
        self.branches = settings.beam_size <= _BRANCHED
        limit = MaxTokens(settings.max_tokens, settings.max_ratio)
        self.most_P = np.array([limit.of(job.source) for job in jobs], dtype=np.int64)
        self.pools = [[Pool(settings.n_best) for _ in range(settings.groups)] for _ in jobs]
        self.trail = Trail()
        places_P11 = np.arange(len(jobs))[:, None, None]
        self.rows_PGW: Ints = np.broadcast_to(places_P11, (len(jobs), settings.groups, 1))
        self.totals_PGW: Floats = np.zeros(self.rows_PGW.shape)
        self.cover_RS: Floats = np.zeros((len(jobs), 1))

    @staticmethod
    def texts(settings: DecodeSettings) -> int:
        """Return the n best."""
        return settings.n_best

    @staticmethod
    def width(settings: DecodeSettings) -> int:
        """Return the beam size: all texts of a prompt come from one search."""
        return settings.beam_size

    @property
    def rows(self) -> Sequence[Written]:
        """The unfinished hypotheses of all prompts; their tokens are read off when they are asked for."""
        count = len(self.jobs) if not self.trail.steps else self.rows_PGW.size
        each = count // max(1, len(self.jobs))
        return self.trail.written([job for job in self.jobs for _ in range(each)])

    def look(self, weights_RS: Floats) -> None:
        """Add what each row looks at to what it has looked at."""
        self.cover_RS = self.cover_RS + weights_RS

    def choose(self, logp_RV: Array, allowed_RV: Array) -> Selection:
        """Extend every hypothesis by one token."""
        settings, width = self.settings, self.size
        spare = (settings.groups - 1) * width  # as many tokens may lose for their use by earlier groups
        values_RC, ids_RC = top(allowed_RV, 2 * width + spare)
        P, G, _ = self.rows_PGW.shape
        parents_PGW, words_PGW = np.zeros((P, G, width), np.int64), np.zeros((P, G, width), np.int64)
        totals_PGW = np.full((P, G, width), -np.inf)
        used_PX: Ints = np.zeros((P, 0), dtype=np.int64)
        for group in range(G):
            found = self._candidates(group, values_RC, ids_RC, used_PX)
            self._finish(group, found, logp_RV)
            parents_PGW[:, group], words_PGW[:, group], totals_PGW[:, group] = found.going(width)
            used_PX = np.concatenate([used_PX, found.words_PC[:, :width]], axis=1)
        return self._continue(parents_PGW, words_PGW, totals_PGW, logp_RV)

    def _candidates(self, group: int, values_RC: Floats, ids_RC: Ints, used_PX: Ints) -> Candidates:
        """Return the 2K best continuations of a group, best first: enough even if K of them end."""
        rows_PW = self.rows_PGW[:, group]
        P, C = len(rows_PW), ids_RC.shape[1]
        totals_PN = (self.totals_PGW[:, group, :, None] + values_RC[rows_PW]).reshape(P, -1)
        words_PN = ids_RC[rows_PW].reshape(P, -1)
        ranked_PN = totals_PN
        if used_PX.shape[1] and self.settings.diversity:
            times_PN = (words_PN[:, :, None] == used_PX[:, None]).sum(axis=-1)
            ranked_PN = totals_PN - self.settings.diversity * times_PN
        best_PC = np.argsort(-ranked_PN, axis=1, kind="stable")[:, : 2 * self.size]  # ties: row, then token
        totals_PC = np.take_along_axis(totals_PN, best_PC, axis=1)
        words_PC = np.take_along_axis(words_PN, best_PC, axis=1)
        parents_PC = np.take_along_axis(rows_PW, best_PC // C, axis=1)
        return Candidates(parents_PC, words_PC, totals_PC, self._ended(parents_PC, words_PC))

    def _ended(self, parents_PC: Ints, words_PC: Ints) -> Bools:
        """Tell which candidates are finished with their last token."""
        length = len(self.trail.steps) + 1
        ended_PC: Bools = (words_PC == END) | (length >= self.most_P)[:, None]
        if self.settings.stop:  # texts are looked at one by one
            rows = self.rows
            for place in np.ndindex(*words_PC.shape):
                row = rows[int(parents_PC[place])]
                longer = Written(row.prompt, [*row.ids, int(words_PC[place])], row.source)
                ended_PC[place] = bool(self.stop(longer))
        return ended_PC

    def _finish(self, group: int, found: Candidates, logp_RV: Array) -> None:
        """Move the candidates that are finished and among the K best to the pools of their prompts."""
        prompts_F, ranks_F = found.finished(self.size)
        if not len(prompts_F):
            return
        parents_F, words_F = found.parents_PC[prompts_F, ranks_F], found.words_PC[prompts_F, ranks_F]
        length = len(self.trail.steps) + 1
        scores_F = found.totals_PC[prompts_F, ranks_F] / self._norm(np.array(length))
        if self.watches:
            scores_F = scores_F + self._coverage(parents_F, prompts_F)
        logps_F = at(logp_RV, parents_F, words_F)
        values = (scores_F, parents_F, words_F, logps_F)
        for prompt, *one in zip(prompts_F.tolist(), *(value.tolist() for value in values), strict=True):
            score, parent, word, logp = one
            self.pools[prompt][group].add(Finished(score, length - 1, parent, word, logp))

    def _coverage(self, rows_F: Ints, prompts_F: Ints) -> Floats:
        """Compute beta · Σ_i log min(Σ_j a_ij, 1) over the real tokens of the source."""
        cover_FS = self.cover_RS[rows_F]
        lengths_F = np.array([self.jobs[prompt].source or cover_FS.shape[1] for prompt in prompts_F])
        real_FS = np.arange(cover_FS.shape[1]) < lengths_F[:, None]
        logs_FS = np.log(np.clip(cover_FS, _LEAST, 1.0))
        sums_F: Floats = np.where(real_FS, logs_FS, 0.0).sum(axis=1)
        return self.settings.coverage_penalty * sums_F

    def _continue(self, parents_PGW: Ints, words_PGW: Ints, totals_PGW: Floats, logp_RV: Array) -> Selection:
        """Give the texts of the prompts whose searches are over, and go on with the others."""
        over_PG = self._over(totals_PGW)
        totals_PGW[over_PG] = -np.inf
        over_P = over_PG.all(axis=1)
        tokens = [token for prompt in np.flatnonzero(over_P) for token in self._tokens(int(prompt))]
        left = np.flatnonzero(~over_P)
        self.jobs = [self.jobs[prompt] for prompt in left]
        self.pools = [self.pools[prompt] for prompt in left]
        self.most_P = self.most_P[left]
        alive_PGW = np.isfinite(totals_PGW[left])
        W = int(alive_PGW.sum(axis=-1).max(initial=0))  # hypotheses come first in their group
        alive_PGW, self.totals_PGW = alive_PGW[..., :W], totals_PGW[left][..., :W]
        parents_R = _filled(parents_PGW[left][..., :W], alive_PGW)
        words_R = _filled(words_PGW[left][..., :W], alive_PGW)
        self.rows_PGW = np.arange(len(parents_R)).reshape(alive_PGW.shape)
        self.trail.add(parents_R, words_R, at(logp_RV, parents_R, words_R))
        if self.watches:
            self.cover_RS = self.cover_RS[parents_R]
        return Selection(parents_R, words_R, tokens)

    def _over(self, totals_PGW: Floats) -> Bools:
        """Tell in which groups no hypothesis is left, enough are finished, or none can reach the n best.

        A total never rises and the coverage penalty is never above 0, so the best that is left can reach at
        most its total divided by the norm of the longest text: a bound that loses nothing.
        """
        best_PG = totals_PGW.max(axis=-1, initial=-np.inf)
        enough = math.ceil(self.settings.patience * self.size - 1e-9)
        found = [[(len(pool.texts), pool.worst) for pool in pools] for pools in self.pools]
        counts_PG, worst_PG = np.moveaxis(np.array(found).reshape(*best_PG.shape, 2), -1, 0)
        with np.errstate(invalid="ignore"):
            hope_PG = best_PG / self._norm(self.most_P)[:, None]
        over_PG: Bools = np.isneginf(best_PG) | (counts_PG >= enough) | (hope_PG <= worst_PG)
        return over_PG

    def _norm(self, length: npt.NDArray[np.int64]) -> Floats:
        norm: Floats = ((5 + length) / 6) ** self.settings.length_penalty
        return norm

    def _tokens(self, prompt: int) -> list[GeneratedToken]:
        """Return the tokens of the n best texts of a prompt, best first."""
        job, found = self.jobs[prompt], []
        texts = [text for pool in self.pools[prompt] for text in pool.texts]
        texts.sort(key=lambda text: -text.score)
        for rank, text in enumerate(texts[: self.settings.n_best]):
            ids, logps = self.trail.back(text)
            reason = self.stop(Written(job.prompt, ids, job.source))
            row = job.row + rank
            pairs = zip(ids[:-1], logps[:-1], strict=True)
            found += [GeneratedToken(row, word, logp) for word, logp in pairs]
            found.append(GeneratedToken(row, ids[-1], logps[-1], reason=reason, score=text.score))
        return found


def _filled(part_PGW: Ints, alive_PGW: Bools) -> Ints:
    """Return the values as rows; where there is no hypothesis, those of the prompt's first one."""
    if not part_PGW.size:
        return np.zeros(0, dtype=np.int64)
    P = len(part_PGW)
    flat_PR, alive_PR = part_PGW.reshape(P, -1), alive_PGW.reshape(P, -1)
    first_P1 = alive_PR.argmax(axis=1)[:, None]
    found_R: Ints = np.where(alive_PR, flat_PR, np.take_along_axis(flat_PR, first_P1, axis=1)).ravel()
    return found_R
