"""The vector of a word from its letters: slot "spelling". Each distinct form of a batch is read once.

Characters by a bidirectional LSTM (Ling et al. 2015, Lample et al. 2016) or by a convolution with the maximum
over positions (Santos & Zadrozny 2014, Ma & Hovy 2016); hashed prefixes, suffixes and shape, as feature-based
taggers have used them (Ratnaparkhi 1996), cost a table look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.dropout import Dropout
from nextword.blocks.recurrent import LSTM
from nextword.blocks.roles import Role, Roles

_CHARACTER = 32  # size of a character's vector
_KERNEL = 3  # characters that a filter of the convolution sees


class Letters(NamedTuple):
    """Forms as tensors: see `text.lexicon.Forms`."""

    characters_FC: Tensor
    lengths_F: Tensor
    affixes_FA: Tensor


class NoSpelling(nn.Module):
    """A word is known by its entry alone."""

    width = 0

    def __init__(self, alphabet: int, width: int, buckets: int) -> None:
        super().__init__()

    def forward(self, letters: Letters) -> Tensor:
        """Return vectors without features."""
        return torch.zeros(len(letters.lengths_F), 0, device=letters.lengths_F.device)


class Affixes(nn.Module):
    """The sum of the vectors of a word's prefixes, suffixes and shape."""

    roles: ClassVar[Roles] = {"table_XE": Role.EMBEDDING}

    def __init__(self, alphabet: int, width: int, buckets: int) -> None:
        super().__init__()
        self.width = width
        self.table_XE = nn.Parameter(torch.empty(buckets, width))
        nn.init.normal_(self.table_XE, std=0.1)

    def forward(self, letters: Letters) -> Tensor:
        """Return ``x_FE``."""
        return F.embedding_bag(letters.affixes_FA, self.table_XE, mode="sum")


class CharacterTable(nn.Module):
    """What both readers of characters have: a vector for each character; 0 for padding."""

    roles: ClassVar[Roles] = {"table_AE": Role.EMBEDDING}

    def __init__(self, alphabet: int) -> None:
        super().__init__()
        self.table_AE = nn.Parameter(torch.empty(alphabet, _CHARACTER))
        nn.init.normal_(self.table_AE, std=0.3)
        self.drop = Dropout(0.1)

    def forward(self, letters: Letters) -> Tensor:
        """Return ``x_FCE``."""
        C = letters.characters_FC.shape[1]
        real_FC = torch.arange(C, device=letters.lengths_F.device) < letters.lengths_F[:, None]
        x_FCE = self.drop(F.embedding(letters.characters_FC, self.table_AE))
        return x_FCE * real_FC[..., None]


class CharacterCNN(nn.Module):
    """Filters over three characters; of each the largest value in the word."""

    def __init__(self, alphabet: int, width: int, buckets: int) -> None:
        super().__init__()
        self.width = width
        self.characters = CharacterTable(alphabet)
        self.filters = nn.Linear(_KERNEL * _CHARACTER, width)
        nn.init.xavier_uniform_(self.filters.weight)
        nn.init.zeros_(self.filters.bias)

    def forward(self, letters: Letters) -> Tensor:
        """Return ``h_FH``: max over positions of tanh(W [e(i-1); e(i); e(i+1)] + b)."""
        x_FCE = F.pad(self.characters(letters), (0, 0, 1, 1))
        C = x_FCE.shape[1] - 2
        parts = torch.split(self.filters.weight, _CHARACTER, dim=1)  # one for each place: nothing is copied
        h_FCH = F.linear(x_FCE[:, :C], parts[0], self.filters.bias)
        for at, part_HE in enumerate(parts[1:], start=1):
            h_FCH = h_FCH + F.linear(x_FCE[:, at : at + C], part_HE)
        pads_FC = torch.arange(C, device=h_FCH.device) >= letters.lengths_F[:, None]
        return torch.tanh(h_FCH.masked_fill(pads_FC[..., None], -torch.inf).max(dim=1).values)


class CharacterLSTM(nn.Module):
    """The last states of an LSTM that reads the characters from each end."""

    def __init__(self, alphabet: int, width: int, buckets: int) -> None:
        super().__init__()
        self.width = width
        self.characters = CharacterTable(alphabet)
        self.forwards = LSTM(_CHARACTER, width - width // 2)
        self.backwards = LSTM(_CHARACTER, width // 2)

    def forward(self, letters: Letters) -> Tensor:
        """Return ``h_FH``: [h→(last); h←(first)]."""
        x_CFE = self.characters(letters).transpose(0, 1)
        return torch.cat(
            [
                last_state(self.forwards, x_CFE, letters.lengths_F),
                last_state(self.backwards, reversed_rows(x_CFE, letters.lengths_F), letters.lengths_F),
            ],
            dim=1,
        )


class Several(nn.Module):
    """Readers of the same letters, side by side: rules for the ends of a word, filters for what is within."""

    def __init__(self, parts: Sequence[nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.width = sum(cast(int, part.width) for part in parts)

    def forward(self, letters: Letters) -> Tensor:
        """Return the vectors of all parts in one."""
        return torch.cat([part(letters) for part in self.parts], dim=1)


class AffixesAndCNN(Several):
    """Affixes and filters; each has the whole width."""

    def __init__(self, alphabet: int, width: int, buckets: int) -> None:
        super().__init__([part(alphabet, width, buckets) for part in (Affixes, CharacterCNN)])


class AffixesAndLSTM(Several):
    """Affixes and an LSTM over characters; each has the whole width."""

    def __init__(self, alphabet: int, width: int, buckets: int) -> None:
        super().__init__([part(alphabet, width, buckets) for part in (Affixes, CharacterLSTM)])


def last_state(layer: LSTM, x_TBE: Tensor, lengths_B: Tensor) -> Tensor:
    """Return h after each row's last position; what stands past it is read in vain but changes nothing."""
    B = x_TBE.shape[1]
    zero_BH = x_TBE.new_zeros(B, layer.hidden)
    h_TBH, _ = layer.read_all(x_TBE, (zero_BH, zero_BH), None)
    return h_TBH[(lengths_B - 1).clamp(min=0), torch.arange(B, device=x_TBE.device)]


def reversed_rows(x_TBE: Tensor, lengths_B: Tensor) -> Tensor:
    """Return each row from its last real position to its first; padding stays where it is."""
    T, B = x_TBE.shape[:2]
    t_T1 = torch.arange(T, device=x_TBE.device)[:, None]
    place_TB = torch.where(t_T1 < lengths_B, lengths_B - 1 - t_T1, t_T1)
    return x_TBE[place_TB, torch.arange(B, device=x_TBE.device)]
