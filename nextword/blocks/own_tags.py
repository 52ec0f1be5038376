"""Tags one after another: each word's tag is chosen in view of the tags before it; slot "tag_head".

p(y | x) = Π p(y_t | x, y_<t): an LSTM reads the feature of each word together with the tag before it (a
transducer that is fed its own output [IITD-2 "Sequence tagging"]). Training reads the true tags (teacher
forcing) or, more and more, its own (Bengio et al. 2015). The best sequence is searched greedily or by a beam.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.crf import FORBIDDEN, Chain
from nextword.blocks.recurrent import LSTM
from nextword.blocks.roles import Role, Roles
from nextword.blocks.tag_heads import NOT_COUNTED, TagHead

_TAG = 32  # size of a tag's vector
_HIDDEN = 64  # size of the state that remembers tags
Feed = Callable[
    [Tensor, Tensor], Tensor
]  # true tags_B, scores_BK of the step that chose them -> tags to read


class TagState(NamedTuple):
    """What is known before a tag: the cell's state, which has read its word, and the tag before it."""

    h_BH: Tensor
    c_BH: Tensor
    before_B: Tensor


class AutoregressiveTags(TagHead):
    """p(y_t | x, y_<t), from the word's feature and a state that has read all tags before."""

    roles: ClassVar[Roles] = {"to_tags": Role.HEAD, "table_KE": Role.EMBEDDING}

    def __init__(self, width: int, legal_KK: Tensor, legal_first_K: Tensor, legal_last_K: Tensor) -> None:
        super().__init__(width + _HIDDEN, legal_KK, legal_first_K, legal_last_K)
        self.first = len(legal_first_K)  # what stands before the first tag
        self.table_KE = nn.Parameter(torch.empty(self.first + 1, _TAG))
        nn.init.normal_(self.table_KE, std=0.3)
        self.cell = LSTM(_TAG + width, _HIDDEN)
        after_KK = torch.cat([legal_KK, legal_first_K[None]])  # the last row: before the first tag
        self.register_buffer("after", torch.where(after_KK, 0.0, FORBIDDEN), persistent=False)
        self.register_buffer("at_end", torch.where(legal_last_K, 0.0, FORBIDDEN), persistent=False)

    after: Tensor
    at_end: Tensor

    def loss(
        self, features_BTD: Tensor, tags_BT: Tensor, lengths_B: Tensor, feed: Feed | None = None
    ) -> Tensor:
        """Return Σ -log p(y_t | x, y_<t); ``feed`` chooses what is read in place of the true tags."""
        scores_BTK = (
            self._at_once(features_BTD, tags_BT) if feed is None else self._fed(features_BTD, tags_BT, feed)
        )
        counted_BT = tags_BT != NOT_COUNTED
        return F.cross_entropy(scores_BTK[counted_BT].float(), tags_BT[counted_BT], reduction="sum")

    def start(self, feature_BD: Tensor) -> TagState:
        """Return the state before the first tag; it has read the first word."""
        blank = self._blank(feature_BD)
        return self.read(feature_BD, blank.before_B, blank)

    def read(self, feature_BD: Tensor, tags_B: Tensor, state: TagState) -> TagState:
        """Read a tag and the word after it."""
        x_BX = torch.cat([self.table_KE[tags_B], feature_BD], dim=1)
        h_BH, c_BH = self.cell(x_BX, (state.h_BH, state.c_BH))
        return TagState(h_BH, c_BH, tags_B)

    def log_probs(self, feature_BD: Tensor, state: TagState, is_last_B: Tensor) -> Tensor:
        """Return log p of each tag; those that are not legal here have probability 0."""
        scores_BK = self.to_tags(torch.cat([state.h_BH, feature_BD], dim=1)).float()
        scores_BK = scores_BK + self.after[state.before_B] + self.at_end * is_last_B[:, None]
        return scores_BK.log_softmax(dim=1)

    def read_all(
        self, features_BTD: Tensor, tags_BT: Tensor, state: TagState, lengths_B: Tensor | None = None
    ) -> tuple[Tensor, TagState]:
        """Read tags, each with the word after it, at once: ``h_BTH``, and the state after each row's last."""
        x_BTX = torch.cat([F.embedding(tags_BT, self.table_KE), features_BTD], dim=2)
        h_TBH, (h_BH, c_BH) = self.cell.read_all(x_BTX.transpose(0, 1), (state.h_BH, state.c_BH), lengths_B)
        last_BT = torch.cat([state.before_B[:, None], tags_BT], dim=1)
        counts_B = torch.full_like(state.before_B, tags_BT.shape[1]) if lengths_B is None else lengths_B
        return h_TBH.transpose(0, 1), TagState(h_BH, c_BH, last_BT.gather(1, counts_B[:, None])[:, 0])

    def _at_once(self, features_BTD: Tensor, tags_BT: Tensor) -> Tensor:
        before_BT = torch.full_like(tags_BT, self.first)
        before_BT[:, 1:] = tags_BT[:, :-1].clamp(min=0)
        h_BTH, _ = self.read_all(features_BTD, before_BT, self._blank(features_BTD))
        scores_BTK: Tensor = self.to_tags(torch.cat([h_BTH, features_BTD.to(h_BTH.dtype)], dim=2))
        return scores_BTK

    def _blank(self, features: Tensor) -> TagState:
        """Return the state that has read nothing."""
        zero_BH = features.new_zeros(len(features), self.cell.hidden, dtype=torch.float32)
        return TagState(zero_BH, zero_BH, torch.full((len(features),), self.first, device=features.device))

    def _fed(self, features_BTD: Tensor, tags_BT: Tensor, feed: Feed) -> Tensor:
        state = self.start(features_BTD[:, 0])
        found: list[Tensor] = []
        for t in range(features_BTD.shape[1]):
            feature_BD = features_BTD[:, t]
            if t:
                with torch.no_grad():
                    tags_B = feed(tags_BT[:, t - 1].clamp(min=0), found[-1])
                state = self.read(feature_BD, tags_B, state)
            found.append(self.to_tags(torch.cat([state.h_BH, feature_BD], dim=1)))
        return torch.stack(found, dim=1)

    def chain(self, features_BTD: Tensor, lengths_B: Tensor) -> Chain:
        """Return the tags that were found, with log p(y_t | x, y_<t) after them; transitions say nothing."""
        logp_BTK, tags_BT = self.search(features_BTD, lengths_B, self.beam)
        K = self.first
        none_KK, none_K = logp_BTK.new_zeros(K, K), logp_BTK.new_zeros(K)
        return Chain(logp_BTK, none_KK, none_K, none_K, lengths_B, tags_BT)

    def search(self, features_BTD: Tensor, lengths_B: Tensor, size: int = 1) -> tuple[Tensor, Tensor]:
        """Find good tags with ``size`` hypotheses a row (1: greedily): log p along them, and the tags."""
        B, T, W, K = *features_BTD.shape[:2], size, self.first
        rows_B1 = torch.arange(B, device=features_BTD.device)[:, None]
        total_BW = features_BTD.new_full((B, W), FORBIDDEN * T, dtype=torch.float32)
        total_BW[:, 0] = 0.0  # all hypotheses are the same at first
        stay_K = torch.full((K,), FORBIDDEN * T, device=features_BTD.device)
        stay_K[0] = 0.0  # a row that has ended goes on with nothing
        wide_BWTD = features_BTD[:, None].expand(B, W, T, -1)
        state = self.start(wide_BWTD[:, :, 0].reshape(B * W, -1))
        steps: list[tuple[Tensor, Tensor, Tensor]] = []
        for t in range(T):
            feature_XD = wide_BWTD[:, :, t].reshape(B * W, -1)
            if steps:
                state = self.read(feature_XD, steps[-1][2].flatten(), state)
            is_last_X = (lengths_B == t + 1).repeat_interleave(W)
            logp_BWK = self.log_probs(feature_XD, state, is_last_X).view(B, W, K)
            gain_BWK = torch.where((t < lengths_B)[:, None, None], logp_BWK, stay_K)
            total_BW, best_BW = (total_BW[..., None] + gain_BWK).flatten(1).topk(W, dim=1)
            parents_BW, tags_BW = best_BW // K, best_BW % K
            steps.append((logp_BWK, parents_BW, tags_BW))
            state = TagState(*(part[(rows_B1 * W + parents_BW).flatten()] for part in state))
        return _traced(steps, rows_B1[:, 0])


def _traced(steps: list[tuple[Tensor, Tensor, Tensor]], rows_B: Tensor) -> tuple[Tensor, Tensor]:
    """Follow the best hypothesis of each row back to its beginning."""
    place_B = torch.zeros_like(rows_B)
    logps, tags = [], []
    for logp_BWK, parents_BW, tags_BW in reversed(steps):
        tags.append(tags_BW[rows_B, place_B])
        place_B = parents_BW[rows_B, place_B]
        logps.append(logp_BWK[rows_B, place_B])
    return torch.stack(logps[::-1], dim=1), torch.stack(tags[::-1], dim=1)
