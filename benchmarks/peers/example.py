"""A word language model in the manner of PyTorch's word_language_model example, written afresh.

Embedding, `nn.LSTM`, a linear decoder; columns of the text, the state carried and detached; log-softmax and
NLL; clipping at 0.25 and plain SGD by hand. The example's own settings: rate 20, dropout 0.2, weights +-0.1.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from peers.task import Task, ids_of


class WordModel(nn.Module):
    """The example's recurrent model."""

    def __init__(self, vocab: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(vocab, width)
        self.rnn = nn.LSTM(width, width, layers, dropout=dropout)
        self.decoder = nn.Linear(width, vocab)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, ids_TB: Tensor, hidden: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        embedded = self.drop(self.encoder(ids_TB))
        output, hidden = self.rnn(embedded, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.decoder.out_features)
        return nn.functional.log_softmax(decoded, dim=1), hidden


class Peer:
    """The loop, one step at a time."""

    def __init__(self, task: Task) -> None:
        torch.manual_seed(task.seed)
        self.task, self.rate, self.place = task, task.rate, 0
        self.data_TB = columns(ids_of(task), task.batch)
        self.model = WordModel(task.vocab, task.width, task.layers, task.dropout)
        self.criterion = nn.NLLLoss()
        self.hidden = self.zeros(task.batch)

    def zeros(self, batch: int) -> tuple[Tensor, ...]:
        """A fresh state."""
        return tuple(torch.zeros(self.task.layers, batch, self.task.width) for _ in range(2))

    def step(self) -> float:
        """One batch of the text; the loss in nats per word."""
        if self.place + self.task.length + 1 > len(self.data_TB):
            self.place, self.hidden = 0, self.zeros(self.task.batch)
        x = self.data_TB[self.place : self.place + self.task.length]
        y = self.data_TB[self.place + 1 : self.place + 1 + self.task.length].view(-1)
        self.place += self.task.length
        self.model.train()
        self.model.zero_grad()
        self.hidden = tuple(part.detach() for part in self.hidden)
        output, self.hidden = self.model(x, self.hidden)
        loss = self.criterion(output, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 0.25)
        for weight in self.model.parameters():
            weight.data.add_(weight.grad, alpha=-self.rate)
        return loss.item()

    @torch.no_grad()
    def nats(self, ids: np.ndarray, batch: int = 10) -> tuple[float, int]:
        """Nats of a text in columns, as the example evaluates, and the words counted."""
        self.model.eval()
        data_TB, hidden, total, count = columns(ids, batch), self.zeros(batch), 0.0, 0
        for place in range(0, len(data_TB) - 1, self.task.length):
            x = data_TB[place : place + self.task.length][: len(data_TB) - 1 - place]
            y = data_TB[place + 1 : place + 1 + len(x)].reshape(-1)
            output, hidden = self.model(x, hidden)
            total += len(y) * self.criterion(output, y).item()
            count += len(y)
        return total, count


def columns(ids: np.ndarray, batch: int) -> Tensor:
    """``data_TB``: column b continues where it ended in the batch before."""
    length = len(ids) // batch
    cut = torch.as_tensor(ids[: length * batch].astype(np.int64))
    return cut.view(batch, -1).t().contiguous()
