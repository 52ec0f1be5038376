"""Small networks for tests of the trainer: a recurrent one and one that looks at the last word only."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nextword.blocks import states
from nextword.blocks.heads import SoftmaxHead
from nextword.models.family import NeuralFamily, NeuralSettings
from nextword.models.network import Network
from nextword.models.randomness import seeded


class TinyRNN(Network):
    """h(t) = tanh(W h(t-1) + E x(t)), with dropout between h and the head."""

    def __init__(self, vocab_size: int = 11, width: int = 6, dropout: float = 0.0) -> None:
        super().__init__()
        self.vocab_size, self.width, self.context, self.carries = vocab_size, width, None, True
        self.embedding = nn.Embedding(vocab_size, width)
        self.hidden = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)
        self.head = SoftmaxHead(width, vocab_size, (1,))

    def start(self, batch, source=None):
        return (torch.zeros(batch, self.width, dtype=self.dtype),)

    def read(self, ids_BT, state, lengths_B=None):
        (h_BH,) = state
        found = []
        for at in range(ids_BT.shape[1]):
            new_BH = torch.tanh(self.hidden(h_BH) + self.embedding(ids_BT[:, at]))
            is_real_B1 = True if lengths_B is None else (at < lengths_B)[:, None]
            h_BH = torch.where(torch.as_tensor(is_real_B1), new_BH, h_BH)
            found.append(self.drop(h_BH))
        return torch.stack(found, dim=1), (h_BH,)

    def reset(self, state, rows_B):
        return states.reset(state, self.start(1), rows_B)


class TinyBigram(Network):
    """The feature of a word is its embedding: no state to speak of."""

    def __init__(self, vocab_size: int = 11, width: int = 6) -> None:
        super().__init__()
        self.vocab_size, self.width, self.context, self.carries = vocab_size, width, 1, True
        self.embedding = nn.Embedding(vocab_size, width)
        self.head = SoftmaxHead(width, vocab_size, (1,))

    def start(self, batch, source=None):
        return ()

    def read(self, ids_BT: Tensor, state, lengths_B=None):
        return self.embedding(ids_BT), state


class NoBatches:
    """A job's batches where a test gives its own."""

    per_epoch, tokens = 1, 0

    def batches(self, epoch, start=0):
        return iter(())


def make_rnn(seed: int = 0, **about) -> TinyRNN:
    """Make a TinyRNN whose weights follow from a seed."""
    with seeded(torch.device("cpu"), seed):
        return TinyRNN(**about)


def _tiny(settings, vocab_size, closed):
    return TinyRNN(vocab_size, 8, settings.dropout)


FAMILY = NeuralFamily("tiny", NeuralSettings, _tiny, {"train.rate": 0.01})
