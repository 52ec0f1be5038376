"""The vector of a word in a sentence: its entry, its spelling, and the states of trained language models.

"Word embeddings" [IITD-1 "Window classification"]; characters for words that were never seen; contextual
states as features: Peters et al. 2018, Akbik et al. 2018.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.dropout import Dropout
from nextword.blocks.roles import Role, Roles
from nextword.blocks.spelling import Letters
from nextword.core.catalog import find
from nextword.core.settings import Settings, Slot
from nextword.data.batches.batch import Ints
from nextword.data.batches.words import WordRows
from nextword.text.lexicon import BUCKETS, UNKNOWN, Forms, Lexicon


class WordInputSettings(Settings):
    """How a word becomes a vector."""

    embedding: int = Field(100, ge=0, le=2**16, description="size E of a known word's vector; 0: none")
    spelling: Slot["spelling"] = Field("affixes", description="a vector from the letters: slot spelling")
    spelling_width: int = Field(64, ge=1, le=2**14, description="size of the vector from the letters")
    vectors: str = Field("", description="file of pretrained word vectors (word2vec, GloVe or fastText)")
    vectors_fixed: bool = Field(False, description="pretrained vectors are not changed in training")
    features: str = Field(
        "", description="runs whose states are features of each word: RUN, or RUN,RUN for both directions"
    )
    dropout_input: float = Field(0.3, ge=0, lt=1, description="share of a word's features dropped")
    rare: float = Field(
        0.25, ge=0, le=1000, description="in training a word seen n times is unknown with rare / (rare + n)"
    )


class Words(NamedTuple):
    """A batch of sentences as tensors; forms are those that occur, each once."""

    words_BT: Tensor
    form_BT: Tensor  # rows of ``letters``
    lengths_B: Tensor
    letters: Letters
    states_BTD: Tensor | None = None
    spelled_FH: Tensor | None = None  # what the spelling has made of the letters, where it is known


def to_letters(forms: Forms, rows_F: Ints, device: torch.device) -> Letters:
    """Turn some forms into tensors."""
    lengths_F = forms.lengths_F[rows_F]
    characters_FC = forms.characters_FC[rows_F, : int(lengths_F.max(initial=1))]
    arrays = (characters_FC, lengths_F, forms.affixes_FA[rows_F])
    return Letters(*(torch.from_numpy(array).to(device) for array in arrays))


def to_tensors(rows: WordRows, device: torch.device, spelled: Spelled | None = None) -> Words:
    """Turn a batch into tensors; forms that do not occur in it are left out, ``spelled`` knows many."""
    present_F, form_BT = np.unique(rows.forms_BT, return_inverse=True)
    spelled_FH = None if spelled is None else spelled.vectors(rows.forms, present_F, device)
    letters = to_letters(rows.forms, present_F if spelled is None else present_F[:0], device)
    return Words(
        torch.from_numpy(rows.words_BT).to(device),
        torch.from_numpy(form_BT.reshape(rows.forms_BT.shape)).to(device),
        torch.from_numpy(rows.lengths_B).to(device),
        letters,
        None if rows.states_BTD is None else torch.from_numpy(rows.states_BTD).to(device),
        spelled_FH,
    )


class Spelled:
    """The vectors of forms that a trained network has read: each is read once in many batches."""

    def __init__(self, spelling: nn.Module, most: int = 1 << 16) -> None:
        self.spelling, self.most = spelling, most
        self.places: dict[str, int] = {}
        self.vectors_MH: Tensor | None = None

    def vectors(self, forms: Forms, rows_F: Ints, device: torch.device) -> Tensor:
        """Return ``h_FH`` of these rows of the forms; what is not there yet is read and kept."""
        names = [forms.spellings[row] for row in rows_F.tolist()]
        new = [at for at, name in enumerate(names) if name not in self.places]
        if new and len(self.places) + len(new) > self.most:  # full: start over with this batch
            self.places, self.vectors_MH, new = {}, None, list(range(len(names)))
        if new or self.vectors_MH is None:
            found_NH = self.spelling(to_letters(forms, rows_F[new], device))
            old = [] if self.vectors_MH is None else [self.vectors_MH[: len(self.places)]]
            if self.vectors_MH is None or len(self.places) + len(new) > len(self.vectors_MH):
                spare_NH = found_NH.new_empty(len(self.places) + len(new), found_NH.shape[1])
                self.vectors_MH = torch.cat([*old, found_NH, spare_NH])  # it grows by doubling
            else:
                self.vectors_MH[len(self.places) : len(self.places) + len(new)] = found_NH
            self.places.update((names[at], place) for place, at in enumerate(new, start=len(self.places)))
        return self.vectors_MH[[self.places[name] for name in names]]


class WordInput(nn.Module):
    """``x_BTE``: the entry's vector, the spelling's, and features, side by side."""

    roles: ClassVar[Roles] = {"table_VE": Role.EMBEDDING}

    def __init__(self, settings: WordInputSettings, lexicon: Lexicon, states: int = 0) -> None:
        super().__init__()
        self.rare = settings.rare
        self.table_VE = nn.Parameter(torch.empty(lexicon.size, settings.embedding))
        nn.init.normal_(self.table_VE, std=0.1)
        self.spelling = find("spelling", settings.spelling)(
            lexicon.alphabet, settings.spelling_width, BUCKETS
        )
        self.drop = Dropout(settings.dropout_input)
        self.width = settings.embedding + self.spelling.width + states
        counts_V = torch.tensor([0.0, *lexicon.counts])
        chance_V = settings.rare / (settings.rare + counts_V).clamp(min=1e-9)
        self.register_buffer("unknown_V", chance_V, persistent=False)
        self.register_buffer("is_fixed_V", None, persistent=False)

    unknown_V: Tensor
    is_fixed_V: Tensor | None

    @torch.no_grad()
    def fill(self, rows_N: Tensor, vectors_NE: Tensor, fixed: bool) -> None:
        """Put pretrained vectors into rows of the table; ``fixed``: training does not change them."""
        self.table_VE[rows_N] = vectors_NE.to(self.table_VE)
        if fixed:
            self.is_fixed_V = torch.zeros(len(self.table_VE), dtype=torch.bool, device=rows_N.device)
            self.is_fixed_V[rows_N] = True

    def entries(self, ids_BT: Tensor) -> Tensor:
        """Return the vectors of entries of the lexicon."""
        e_BTE = F.embedding(ids_BT, self.table_VE)
        if self.is_fixed_V is None:
            return e_BTE
        return torch.where(self.is_fixed_V[ids_BT][..., None], e_BTE.detach(), e_BTE)

    def forward(self, words: Words) -> Tensor:
        """Return the vectors of all words; 0 past a row's length."""
        ids_BT = words.words_BT
        if self.training and self.rare:
            is_dropped_BT = torch.rand(ids_BT.shape, device=ids_BT.device) < self.unknown_V[ids_BT]
            ids_BT = ids_BT.masked_fill(is_dropped_BT, UNKNOWN)
        spelled_FH = self.spelling(words.letters) if words.spelled_FH is None else words.spelled_FH
        parts = [self.entries(ids_BT), spelled_FH[words.form_BT]]
        if words.states_BTD is not None:
            parts.append(words.states_BTD)
        x_BTE = self.drop(torch.cat([part.float() for part in parts], dim=-1))
        T = ids_BT.shape[1]
        real_BT = torch.arange(T, device=ids_BT.device) < words.lengths_B[:, None]
        return x_BTE.masked_fill(~real_BT[..., None], 0.0)
