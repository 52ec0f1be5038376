"""From features to tags: each tag by itself (softmax), or all of a sentence together (CRF); slot "tag_head".

Both become a `Chain`, so that what is predicted is always a legal sequence of tags: for softmax the legal
transitions have score 0. "Structured prediction" (Collobert et al. 2011, Huang et al. 2015).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks import crf
from nextword.blocks.crf import FORBIDDEN, Chain, TransitionScores
from nextword.blocks.roles import Role, Roles

NOT_COUNTED = -1


class TagHead(nn.Module):
    """What both heads have: a linear layer from features to scores of tags."""

    roles: ClassVar[Roles] = {"to_tags": Role.HEAD}
    beam = 1  # hypotheses of a search, where tags are chosen one after another

    def __init__(self, width: int, legal_KK: Tensor, legal_first_K: Tensor, legal_last_K: Tensor) -> None:
        super().__init__()
        self.to_tags = nn.Linear(width, len(legal_first_K))
        nn.init.xavier_uniform_(self.to_tags.weight)
        nn.init.zeros_(self.to_tags.bias)

    def loss(self, features_BTD: Tensor, tags_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Return the sum of -log p of the tags that count."""
        raise NotImplementedError

    def chain(self, features_BTD: Tensor, lengths_B: Tensor) -> Chain:
        """Return the scores of tags and of legal transitions."""
        raise NotImplementedError


class SoftmaxTags(TagHead):
    """p(y_t | x) for each word by itself."""

    def __init__(self, width: int, legal_KK: Tensor, legal_first_K: Tensor, legal_last_K: Tensor) -> None:
        super().__init__(width, legal_KK, legal_first_K, legal_last_K)
        for name, legal in (("pairs", legal_KK), ("first", legal_first_K), ("last", legal_last_K)):
            self.register_buffer(name, torch.where(legal, 0.0, FORBIDDEN), persistent=False)

    pairs: Tensor
    first: Tensor
    last: Tensor

    def loss(self, features_BTD: Tensor, tags_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Return Σ -log p(y_t | x) over words with a tag."""
        counted_BT = tags_BT != NOT_COUNTED
        logits_NK = self.to_tags(features_BTD[counted_BT]).float()
        return F.cross_entropy(logits_NK, tags_BT[counted_BT], reduction="sum")

    def chain(self, features_BTD: Tensor, lengths_B: Tensor) -> Chain:
        """Return log p(y_t | x), and 0 for each legal transition."""
        emissions_BTK = self.to_tags(features_BTD).float().log_softmax(dim=-1)
        return Chain(emissions_BTK, self.pairs, self.first, self.last, lengths_B)


class CRFTags(TagHead):
    """p(y | x) of the whole sequence: a linear-chain conditional random field."""

    def __init__(self, width: int, legal_KK: Tensor, legal_first_K: Tensor, legal_last_K: Tensor) -> None:
        super().__init__(width, legal_KK, legal_first_K, legal_last_K)
        self.transitions = TransitionScores(legal_KK, legal_first_K, legal_last_K)

    def loss(self, features_BTD: Tensor, tags_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Return Σ -log p(y | x) over sentences; a sentence with an unknown tag is left out."""
        real_BT = torch.arange(tags_BT.shape[1], device=tags_BT.device) < lengths_B[:, None]
        counts_B = ((tags_BT != NOT_COUNTED) | ~real_BT).all(dim=1)
        if not bool(counts_B.all()):
            features_BTD, tags_BT, lengths_B = features_BTD[counts_B], tags_BT[counts_B], lengths_B[counts_B]
        if not len(tags_BT):
            return features_BTD.sum() * 0.0
        return -crf.log_likelihood(self.chain(features_BTD, lengths_B), tags_BT).sum()

    def chain(self, features_BTD: Tensor, lengths_B: Tensor) -> Chain:
        """Return the learned scores."""
        return self.transitions.chain(self.to_tags(features_BTD), lengths_B)
