"""Speculative decoding: a small model drafts tokens, the large one reads them all at once (Leviathan 2023).

The texts are those of the large model alone. Greedy: a drafted token is kept while it is the large model's
own choice. Sampling: token x of the draft's q is kept with probability min(1, p(x) / q(x)); the first that
is rejected is drawn from max(p - q, 0), normalized, so that every token has the distribution p. Where all are
kept, one more token follows from p. The draft may be anything on the contract: a small network, an n-gram.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from nextword.core.contracts import Array, Attempter, LanguageModel, State
from nextword.core.errors import ConfigError
from nextword.decode.choose import GeneratedToken, Prompt
from nextword.decode.limits import Limit, StopRule, Written
from nextword.decode.peaks import at, best, checked, copied
from nextword.decode.sampling import Ints, draw, shape, uniform
from nextword.decode.settings import DecodeSettings
from nextword.models.distributions import Floats, as_numpy

_OWN, _KEEP, _DRAFT = range(3)  # streams of random numbers; the first is that of plain sampling
_STREAM = 1 << 48


@dataclass
class Draft:
    """A model that drafts, how many tokens at a time, and how many of them were kept so far."""

    model: LanguageModel
    tokens: int = 4
    drafted: int = 0
    kept: int = 0
    rounds: int = 0
    written: int = 0  # tokens that came out of these rounds

    @property
    def rate(self) -> float:
        """Return the share of the drafted tokens that was kept."""
        return self.kept / max(1, self.drafted)

    def check(self, model: LanguageModel, settings: DecodeSettings) -> None:
        """Raise an error where this draft cannot serve a model."""
        if settings.decode not in ("greedy", "sample"):
            raise ConfigError(
                f"a draft was given, but 'decode' is {settings.decode}; drafts serve greedy and sample"
            )
        if self.model.vocab_size != model.vocab_size:
            raise ConfigError(
                f"the draft has a vocabulary of {self.model.vocab_size:,} tokens and the model one of "
                f"{model.vocab_size:,}; train the draft with the model's tokenizer"
            )


@dataclass
class Speculation:
    """One batch of texts under way; a round drafts tokens for every row, reads them, and keeps the first."""

    model: LanguageModel
    draft: Draft
    settings: DecodeSettings
    limits: Limit
    stop: StopRule
    jobs: list[Prompt]
    rows: list[Written] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = [Written(job.prompt, source=job.source) for job in self.jobs]

    def run(self, state: State, drafts: State) -> Iterator[GeneratedToken]:
        """Yield the tokens; the states are those of model and draft after the prompts."""
        logp_RV = checked(self.model.next(state))
        last_R = self._plain(logp_RV)
        tokens, going = self._write([[word] for word in last_R.tolist()], logp_RV[:, None])
        yield from tokens
        while len(going):
            if len(going) < len(last_R):
                state = self.model.reorder(state, going)
                drafts = self.draft.model.reorder(drafts, going)
                last_R = last_R[going]
            words_RK, q_RKV, draft_states = self._drafted(last_R, drafts)
            read_RT = np.concatenate([last_R[:, None], words_RK], axis=1)
            logp_RTV, keep = attempted(self.model, read_RT, state)
            kept = self._kept(checked(logp_RTV.reshape(-1, logp_RTV.shape[-1])), words_RK, q_RKV)
            counts_R = np.array([len(ids) for ids in kept], dtype=np.int64)  # kept drafts and one more
            self._count(counts_R, words_RK)
            tokens, going = self._write(kept, logp_RTV)
            yield from tokens
            if len(going):
                state, drafts = keep(counts_R), self._draft_state(draft_states, words_RK, counts_R)
                last_R = np.array([ids[-1] for ids in kept], dtype=np.int64)

    def _write(self, new: Sequence[Sequence[int]], logp_RTV: Array) -> tuple[list[GeneratedToken], Ints]:
        """Append new tokens to their rows until a rule stops one; return also the rows that go on."""
        tokens, going = [], []
        for place, (job, row, ids) in enumerate(zip(self.jobs, self.rows, new, strict=True)):
            logps = at(logp_RTV[place], np.arange(len(ids)), np.array(ids))
            reason = ""
            for word, logp in zip(ids, logps.tolist(), strict=True):
                row.ids.append(word)
                reason = self.stop(row)
                tokens.append(GeneratedToken(job.row, word, logp, reason=reason))
                if reason:
                    break
            if not reason:
                going.append(place)
        self.jobs, self.rows = [self.jobs[i] for i in going], [self.rows[i] for i in going]
        return tokens, np.array(going, dtype=np.int64)

    def _drafted(self, last_R: Ints, state: State) -> tuple[Ints, Floats | None, list[State]]:
        """Return the drafted tokens, what they were drawn from, and the draft's states on the way."""
        states, words, q = [state], [last_R], []
        rows = [Written(row.prompt, list(row.ids), row.source) for row in self.rows]
        for _ in range(self.draft.tokens):
            logp_RV, state = self.draft.model.step(words[-1], states[-1])
            states.append(state)
            allowed_RV = copied(checked(logp_RV))
            self.limits(allowed_RV, rows)
            if self.settings.decode == "greedy":
                words.append(best(allowed_RV))
            else:
                q.append(shape(as_numpy(allowed_RV, np.float64), self.settings))
                words.append(draw(q[-1], self._numbers(_DRAFT, rows)))
            for row, word in zip(rows, words[-1].tolist(), strict=True):
                row.ids.append(word)
        return np.stack(words[1:], axis=1), np.stack(q, axis=1) if q else None, states

    def _draft_state(self, states: list[State], words_RK: Ints, counts_R: Ints) -> State:
        """Return the draft's state after the same tokens as the model's."""
        if counts_R.max() == len(states):  # the last drafted token was kept somewhere, but never read
            states.append(self.draft.model.step(words_RK[:, -1], states[-1])[1])
        return picked(self.draft.model, states, counts_R)

    def _kept(self, logp_NV: Array, words_RK: Ints, q_RKV: Floats | None) -> list[list[int]]:
        """Return for every row the drafted tokens that are kept, and the model's own after them."""
        R, K = words_RK.shape
        longer = [
            Written(row.prompt, [*row.ids, *ids[:count]], row.source)
            for row, ids in zip(self.rows, words_RK.tolist(), strict=True)
            for count in range(K + 1)
        ]
        allowed_NV = copied(logp_NV)
        self.limits(allowed_NV, longer)
        if q_RKV is None:
            own_RT = best(allowed_NV).reshape(R, K + 1)
            same_RK = (own_RT[:, :K] == words_RK).cumprod(axis=1)
            return [own[: 1 + same].tolist() for own, same in zip(own_RT, same_RK.sum(axis=1), strict=True)]
        p_RTV = shape(as_numpy(allowed_NV, np.float64), self.settings).reshape(R, K + 1, -1)
        kept_RK = np.array(self._numbers(_KEEP, longer, K + 1)).reshape(R, K + 1)[:, :K]
        drawn_RT = np.array(self._numbers(_OWN, longer, K + 1)).reshape(R, K + 1)
        rows = zip(p_RTV, q_RKV, words_RK.tolist(), kept_RK, drawn_RT, strict=True)
        return [_accepted(*each) for each in rows]

    def _plain(self, logp_RV: Array) -> Ints:
        """Return the first token of every row as plain decoding chooses it."""
        allowed_RV = copied(logp_RV)
        self.limits(allowed_RV, self.rows)
        if self.settings.decode == "greedy":
            return best(allowed_RV)
        return draw(shape(as_numpy(allowed_RV, np.float64), self.settings), self._numbers(_OWN, self.rows))

    def _numbers(self, stream: int, rows: Sequence[Written], each: int = 1) -> list[float]:
        """Return a random number for each row, from its text, its position and the stream only."""
        seed = self.settings.seed or 0
        texts = (self.jobs[place // each].row + stream * _STREAM for place in range(len(rows)))
        return [uniform(seed, text, row.count) for text, row in zip(texts, rows, strict=True)]

    def _count(self, counts_R: Ints, words_RK: Ints) -> None:
        self.draft.drafted += words_RK.size
        self.draft.kept += int(counts_R.sum()) - len(counts_R)
        self.draft.rounds += len(counts_R)
        self.draft.written += int(counts_R.sum())


def _accepted(p_TV: Floats, q_KV: Floats, words: list[int], keep_K: Floats, own_T: Floats) -> list[int]:
    """Apply the rule to one row: log p and log q at each place, drafted tokens, random numbers."""
    for place, word in enumerate(words):
        if np.log(max(keep_K[place], 1e-300)) >= p_TV[place, word] - q_KV[place, word]:
            rest_V = np.maximum(np.exp(p_TV[place]) - np.exp(q_KV[place]), 0.0)
            with np.errstate(divide="ignore"):
                logs_1V = np.log(rest_V if rest_V.any() else np.exp(p_TV[place]))[None]
            return [*words[:place], int(draw(logs_1V, [own_T[place]])[0])]
    return [*words, int(draw(p_TV[-1:], [own_T[-1]])[0])]


def attempted(model: LanguageModel, ids_BT: Ints, state: State) -> tuple[Array, Callable[[Ints], State]]:
    """Return ``logp_BTV`` after each token, and what makes the state after the first tokens of each row."""
    if isinstance(model, Attempter):
        logp_BTV, attempt = model.attempt(ids_BT, state)
        return logp_BTV, lambda counts_B: model.keep(attempt, counts_B)
    states, logps = [state], []
    for ids_B in ids_BT.T:
        logp_BV, state = model.step(ids_B, state)
        states.append(state)
        logps.append(as_numpy(logp_BV, np.float64))
    return np.stack(logps, axis=1), lambda counts_B: picked(model, states, counts_B)


def picked(model: LanguageModel, states: Sequence[State], counts_B: Ints) -> State:
    """Return every row as it was after its own number of steps."""
    distinct = np.unique(counts_B)
    if len(distinct) == 1:
        return states[int(distinct[0])]
    groups = [np.flatnonzero(counts_B == count) for count in distinct]
    parts = [model.reorder(states[int(count)], rows) for count, rows in zip(distinct, groups, strict=True)]
    return model.reorder(model.join(parts), np.argsort(np.concatenate(groups)))
