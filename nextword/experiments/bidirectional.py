"""How a bidirectional language model would win: by looking at the word it has to predict.

[IITD-2 "Bidirectional RNNs"; MAUSAM: "Use LSTMs not BiLSTMs. Why?"]. nextword refuses to train one; here it
is built nevertheless, to show that its loss falls to zero and that it cannot generate.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.cells import Cell
from nextword.blocks.embeddings import Embedding
from nextword.blocks.states import ZeroStart
from nextword.core.catalog import find
from nextword.core.contracts import NATS_PER_BIT
from nextword.core.events import Event, Progress, Stage
from nextword.data.batches.windows import Windows
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, bars, lines
from nextword.experiments import fitting
from nextword.experiments.finding import Judge
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import Ints, Letters, read_letters, rows_of
from nextword.models.randomness import INITIAL, seeded
from nextword.system import threads

CLAIM = "Bidirectional RNNs are for taggers, classifiers and encoders; a language model is not a BiLSTM. Why?"
SEES = "read from both sides, a language model sees the word it has to predict"
BLIND = "without the words to come it predicts worse than a model from the left"
CLAIMS = (SEES, BLIND)
HIDDEN, LENGTH = 64, 32


class TwoWays(nn.Module):
    """An LSTM from the left and, if asked, one from the right; their states side by side, then the output."""

    def __init__(self, vocab_size: int, both: bool) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, HIDDEN, std=1.0)
        self.layers = nn.ModuleList(find("cell", "lstm")(HIDDEN, HIDDEN) for _ in range(1 + both))
        self.start = ZeroStart(HIDDEN, 2)
        self.to_words = nn.Linear(HIDDEN * (1 + both), vocab_size)

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Return ``logits_BTV`` of the next word, from h→(t) and h←(t): the latter has read word t + 1."""
        x_TBE = self.embedding(ids_BT.T)
        outputs = []
        for layer, way in zip(self.layers, (1, -1), strict=False):
            assert isinstance(layer, Cell)
            turned_TBE = x_TBE if way == 1 else x_TBE.flip(0)
            h_TBH, _ = layer.read(turned_TBE, self.start(len(ids_BT)))
            outputs.append(h_TBH if way == 1 else h_TBH.flip(0))  # h(t) = [h→(t); h←(t)]
        logits_TBV: Tensor = self.to_words(torch.cat(outputs, dim=-1))
        return logits_TBV.transpose(0, 1)


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train both on letters; measure them as they were trained, and with the future hidden."""
    fitting.refuse("bidirectional", run)
    steps = 10 if quick else 300
    text = yield from read_letters(40_000 if quick else 300_000, 20_000)
    yield Stage("train from the left, and from both sides", 2 * steps, "steps")
    curves: dict[str, list[float]] = {}
    bits: dict[str, float] = {}
    with threads.using(1):
        for done, (name, both) in enumerate((("from the left", False), ("from both sides", True))):
            with seeded(torch.device("cpu"), 0, INITIAL):
                network = TwoWays(text.vocab_size, both)
            curves[name] = yield from _learn(network, text, steps, done * steps)
            bits[name] = _bits(network, text.held, hidden=False)
            if both:
                bits["from both sides, future hidden"] = _bits(network, text.held, hidden=True)
    guess = math.log2(text.vocab_size)
    left, looks, blind = bits.values()
    judge = Judge(quick)
    judge.measure(
        SEES,
        looks < 0.5 * left,
        f"a letter of new text costs {looks:.2f} bits against {left:.2f} from the left, because the "
        "state from the right has read it",
    )
    judge.measure(
        BLIND,
        blind > left,
        f"when it generates, the future is not there yet: {blind:.2f} bits, against {left:.2f} (a "
        f"blind guess: {guess:.1f})",
    )
    yield from finish(
        ExperimentResult(
            "bidirectional", "Why no bidirectional language model", 'IITD-2 "Bidirectional RNNs"', CLAIM,
            f"both sides: {looks:.2f} bits per letter; with the future hidden {blind:.2f}; left only "
            f"{left:.2f}",
            judge.findings,
            f"Measured on {text.about}: LSTMs of {HIDDEN} units, {steps} steps each. For a tagger nothing is "
            "given away, since the tag is not among the words it reads: there both sides are a gain.",
            (_picture(curves), _bars(bits)),
        ),
        out,
    )  # fmt: skip


def _learn(network: TwoWays, text: Letters, steps: int, before: int) -> Generator[Event, None, list[float]]:
    """Train, and return the bits per letter of every step."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-3)
    source = Windows(text.ids, batch=32, length=LENGTH, seed=0)
    found: list[float] = []
    for batch in source.batches(0):
        if len(found) == steps:
            break
        read, targets = (torch.from_numpy(part) for part in (batch.inputs_BT, batch.targets_BT))
        loss = F.cross_entropy(network(read).flatten(0, 1), targets.flatten(), ignore_index=-1)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        found.append(float(loss.detach()) / NATS_PER_BIT)
        if len(found) % 10 == 0:
            yield Progress(before + len(found))
    return found


@torch.no_grad()
def _bits(network: TwoWays, held: Ints, hidden: bool) -> float:
    """Return bits per letter of new text; ``hidden``: predictions see only what is written so far."""
    rows = torch.from_numpy(rows_of(held, LENGTH + 1, 100))
    if not hidden:
        logits_BTV, targets_BT = network(rows[:, :-1])[:, 8:], rows[:, 9:]
    else:
        places = range(8, LENGTH, 4)
        logits_BTV = torch.stack([network(rows[:, : at + 1])[:, -1] for at in places], dim=1)
        targets_BT = rows[:, [at + 1 for at in places]]
    nats = F.cross_entropy(logits_BTV.flatten(0, 1), targets_BT.flatten())
    return float(nats) / NATS_PER_BIT


def _picture(curves: dict[str, list[float]]) -> Chart:
    series = []
    for name, values in curves.items():
        smooth = [float(np.mean(values[max(0, i - 9) : i + 1])) for i in range(len(values))]
        series.append(Series(name, tuple((float(i + 1), value) for i, value in enumerate(smooth))))
    drawn = lines(series, "Bits per letter in training", Axis("step"), Axis("bits per letter", zero=True))
    caption = "The training loss, mean of ten steps: one learns the text, the other learns to look."
    return Chart(drawn, caption)


def _bars(bits: dict[str, float]) -> Chart:
    drawn = bars(list(bits.items()), "Bits per letter of new text", "bits per letter; less is better",
                 [f"{value:.2f}" for value in bits.values()])  # fmt: skip
    table = Table(("model", "bits per letter"), tuple(bits.items()))
    caption = "New text as each was trained to read it, and as a language model must: nothing to the right."
    return Chart(drawn, caption, table)
