"""Encoder only, decoder only, or both: three kinds of Transformer at three uses, at an equal budget.

[MAUSAM "Encoders", "Decoders": "self-attention only on words generated until now, not on whole sentence";
"Encoder-Decoder": "we process the source sentence with a bidirectional model and generated the target with a
unidirectional model", "for this kind of seq2seq format, we often use a Transformer Encoder-Decoder"]. BERT,
GPT and T5 are the names of the three.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from math import log
from typing import Any, NamedTuple

import numpy as np

from nextword.core.events import Event, Stage
from nextword.drawing.page import Cell, Table
from nextword.drawing.svg import Axis, Guide, Series, lines
from nextword.evaluation.significance import LEVEL, Test, against, holm
from nextword.experiments import fitting
from nextword.experiments.finding import Finding, Judge, Verdict
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import (
    Count,
    Floats,
    Learned,
    Made,
    build,
    learn,
    mean_and_spread,
    settings_of,
)
from nextword.experiments.uses import (
    BOTH,
    CONTINUE,
    DECODER,
    ENCODER,
    FILL,
    GIVEN,
    KINDS,
    LEAST,
    LENGTH,
    LETTERS,
    SIDE,
    TURN,
    USES,
    VOCABULARY,
    costs,
    make_batch,
    make_rows,
)
from nextword.models.network import Network
from nextword.tasks.objectives.corrupted import CorruptedLoss

CLAIM = (
    "An encoder sees the whole sentence, a decoder only the words so far; where one sequence becomes "
    "another, an encoder reads the source and a decoder writes the target."
)
BLIND = "from left to right a decoder does not know a letter that only what follows decides"
CAN = {
    (ENCODER, FILL): "an encoder, which sees both sides, fills such a blank",
    (BOTH, FILL): "so does an encoder with a decoder",
    (DECODER, FILL): "so does a decoder that writes the letters again after the text",
    (DECODER, CONTINUE): "a decoder continues a text as well as can be",
    (BOTH, CONTINUE): "so does an encoder with a decoder",
    (DECODER, TURN): "a decoder turns a sequence into another",
    (BOTH, TURN): "so does an encoder with a decoder",
}
APART = "an encoder that writes all letters at once cannot make them agree"
MORE = {  # use: the kind that should cost less, and the other
    FILL: (ENCODER, DECODER, "from the same rows an encoder learns to fill blanks better than a decoder"),
    CONTINUE: (DECODER, ENCODER, "a decoder learns to continue better than an encoder, a letter at a time"),
    TURN: (BOTH, DECODER, "encoder and decoder learn to turn sequences better than a decoder of that size"),
}
CLAIMS = (BLIND, *(f"{use}: {claim}" for (_, use), claim in CAN.items()), APART,
          *(claim for _, _, claim in MORE.values()))  # fmt: skip
LEARNED = 0.1  # nats per letter above the least: less counts as learned
MARGIN = 0.02  # nats per letter: less does not tell two kinds apart
ROWS, TESTED = 32, 200
RATES = (0.005, 0.01)  # the better one counts; chosen by the first seed, on rows of their own
DISAGREE = (SIDE - 1) * log(2) / SIDE  # nats per letter: letters drawn apart, against one coin for all
SMALL: dict[str, Any] = {  # positions that say which place it is: letters belong together by place alone
    "model.hidden": 32, "model.heads": 4, "model.context": LENGTH + SIDE, "model.position": "learned",
}  # fmt: skip
SIZES: dict[str, dict[str, Any]] = {  # as many weights each: cross-attention takes what inner layers lack
    ENCODER: {"model.objective": "masked", "model.layers": 2, "model.inner": 128},
    DECODER: {"model.objective": "causal", "model.layers": 2, "model.inner": 128},
    BOTH: {
        "model.objective": "span", "model.spans.sentinels": 1, "model.encoder_layers": 1, "model.layers": 1,
        "model.inner": 96,
    },
}  # fmt: skip
Pair = tuple[str, str]  # a kind and a use


class Trials(NamedTuple):
    """The results of a kind at a use over the seeds."""

    weights: int
    rate: float
    curves: list[list[float]]
    costs: list[Floats]  # ``nats_BT`` of the letters that are predicted

    def above(self, use: str) -> list[Floats]:
        """Return nats per letter above the least, of each row, for each seed."""
        least = LEAST[use]
        return [(nats_BT.sum(axis=1) - least.nats) / least.letters for nats_BT in self.costs]

    def seeds(self, use: str) -> list[float]:
        """Return the mean of each seed."""
        return [float(above_B.mean()) for above_B in self.above(use)]


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train every kind for every use, on the same number of rows."""
    fitting.refuse("three-kinds", run)
    seeds, steps = (2, 4) if quick else (3, 400)
    trainings = len(KINDS) * len(USES) * (seeds + len(RATES) - 1)
    yield Stage("train three kinds for three uses", trainings * steps, "steps")
    count, found = Count(), {}
    for use in USES:
        for kind in KINDS:
            found[kind, use] = yield from _trials(kind, use, seeds, steps, count)
    tests = {use: _test(found, use) for use in USES}
    corrected = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    learned = sum(max(found[pair].seeds(pair[1])) < LEARNED for pair in found)
    yield from finish(
        ExperimentResult(
            "three-kinds", "Encoder, decoder, or both", 'MAUSAM "Encoder-Decoder"', CLAIM,
            f"{learned} of {len(found)} learned; all letters at once cost "
            f"{np.mean(found[ENCODER, TURN].seeds(TURN)):.2f} nats more",
            _judged(found, tests, corrected, quick), _method(found, seeds, steps),
            (_picture(found), _table(found)),
        ),
        out,
    )  # fmt: skip


def _method(found: dict[Pair, Trials], seeds: int, steps: int) -> str:
    sizes = ", ".join(f"{kind} {found[kind, FILL].weights:,}" for kind in KINDS)
    return (
        f"{SIDE} of {LETTERS} letters, a mark, and the same letters from the last to the first, all small or "
        "all capital by one coin. Fill: one of the first letters is a blank, and what follows decides it; an "
        "encoder predicts it, the others write the first letters again. "
        f"Continue: after {GIVEN} letters. Turn: letters into those after the mark. Each network (weights "
        f"without positions: {sizes}; width {SMALL['model.hidden']}) learns each use by itself, {steps} "
        f"steps of {ROWS} rows, {seeds} seeds, the better rate of {' and '.join(f'{r:g}' for r in RATES)}. A "
        f"letter's cost above the least possible is measured in {TESTED} new rows: below {LEARNED:g} nats in "
        "every seed is learned, else nothing is said: longer training might do it. Kinds differ by at least "
        f"{MARGIN:g} nats with p below {LEVEL:g} (Holm's for all uses), and do not if the 95 % interval "
        f"is within {MARGIN:g}."
    )


def _trials(kind: str, use: str, seeds: int, steps: int, count: Count) -> Generator[Event, None, Trials]:
    """Train with every seed, at the rate that suits better."""
    first: dict[float, Learned] = {}
    for rate in RATES:
        first[rate] = yield from _learned(kind, use, 0, steps, rate, count)
    rate = min(RATES, key=lambda each: float(_costs(first[each], kind, use, seed=7).sum()))
    learned = [first[rate]]
    for seed in range(1, seeds):
        learned.append((yield from _learned(kind, use, seed, steps, rate, count)))
    return Trials(
        weights_of(learned[0].model.network), rate, [each.losses for each in learned],
        [_costs(each, kind, use, 8) for each in learned],
    )  # fmt: skip


def weights_of(network: Network) -> int:
    """Count the weights but for vectors of positions: an encoder has many that are never read."""
    return sum(weight.numel() for name, weight in network.named_parameters() if "position" not in name)


def _learned(
    kind: str, use: str, seed: int, steps: int, rate: float, count: Count
) -> Generator[Event, None, Learned]:
    sets = SMALL | SIZES[kind] | {"train.steps": steps, "train.rate": rate, "train.batch": ROWS}
    settings = settings_of("transformer", seed, sets)
    train: Any = settings.train
    source = Made(partial(make_batch, kind=kind, use=use, rows=ROWS), seed)
    objective = None if kind == DECODER else CorruptedLoss(train)
    return (yield from learn(settings, build(settings, VOCABULARY), source, count, objective))


def _costs(learned: Learned, kind: str, use: str, seed: int) -> Floats:
    """Return nats of the letters of new rows; a model whose training broke down guesses."""
    ids_BT = make_rows(np.random.default_rng((9, seed)), TESTED)
    nats_BT = costs(learned.model.network, kind, use, ids_BT)
    return np.where(np.isfinite(nats_BT), nats_BT, np.log(VOCABULARY))


def _test(found: dict[Pair, Trials], use: str) -> Test:
    """Test how much more the other kind costs."""
    better, other, _ = MORE[use]
    return against(found[other, use].above(use), found[better, use].above(use), np.ones(TESTED))


def by_learning(above: Sequence[float]) -> Verdict:
    """Judge by the nats above the least of each seed; what was not learned might be, by longer training."""
    return Verdict.HELD if max(above) < LEARNED else Verdict.OPEN


def by_bound(above: float, bound: float) -> Verdict:
    """Judge whether something costs as much as it must; what costs more still was not learned."""
    if above < bound - MARGIN:
        return Verdict.FAILED
    return Verdict.HELD if above < bound + LEARNED else Verdict.OPEN


def by_margin(test: Test, p: float) -> Verdict:
    """Judge whether the other kind costs more by `MARGIN`."""
    if abs(test.behind) >= MARGIN and p < LEVEL:
        return Verdict.HELD if test.behind > 0 else Verdict.FAILED
    return Verdict.FAILED if test.low > -MARGIN and test.high < MARGIN else Verdict.OPEN


def _judged(
    found: dict[Pair, Trials], tests: dict[str, Test], corrected: dict[str, float], quick: bool
) -> tuple[Finding, ...]:
    judge = Judge(quick)
    first = [float(nats_BT[:, : SIDE - GIVEN].mean()) for nats_BT in found[DECODER, CONTINUE].costs]
    judge.measure(
        BLIND,
        by_bound(float(np.mean(first)), log(LETTERS)),
        f"{np.mean(first):.2f} nats for a letter before the mark; a guess costs {log(LETTERS):.2f}",
    )
    for (kind, use), claim in CAN.items():
        above = found[kind, use].seeds(use)
        judge.measure(
            f"{use}: {claim}",
            by_learning(above),
            f"{', '.join(f'{each:.3f}' for each in above)} nats per letter above the least, each seed",
        )
    above = found[ENCODER, TURN].seeds(TURN)
    judge.measure(
        APART,
        by_bound(float(np.mean(above)), DISAGREE),
        f"{np.mean(above):.3f} nats per letter above the least; letters that do not know each other "
        f"cost {DISAGREE:.3f}",
    )
    for use, (better, other, claim) in MORE.items():
        test = tests[use]
        judge.measure(
            claim,
            by_margin(test, corrected[use]),
            f"{other} {test.behind:+.3f} nats per letter against {better}, 95 % from {test.low:+.3f} to "
            f"{test.high:+.3f} (p = {corrected[use]:.2g})",
        )
    return judge.findings


def _picture(found: dict[Pair, Trials]) -> Chart:
    """Draw learning: no row is read twice, so that the loss of training is that of new rows."""
    series = []
    for look, ((kind, use), trials) in enumerate(found.items()):
        least = LEAST[use].nats / LEAST[use].letters
        losses_KS = np.array([curve for curve in trials.curves if len(curve) == len(trials.curves[0])])
        mean_S = losses_KS.mean(axis=0) - least
        smooth = [float(mean_S[max(0, at - 19) : at + 1].mean()) for at in range(len(mean_S))]
        points = tuple(((at + 1.0) * ROWS, max(value, 0.0)) for at, value in enumerate(smooth) if at % 8 == 7)
        series.append(Series(f"{use}: {kind}", points or ((float(ROWS), smooth[-1]),), look))
    drawn = lines(
        series, "Learning", Axis("rows read"), Axis("nats per letter above the least", zero=True),
        [Guide(LEARNED, "learned"), Guide(DISAGREE, "letters that do not agree")],
    )  # fmt: skip
    return Chart(drawn, "Mean over seeds and 20 steps, of all letters written; no row is read twice.")


def _table(found: dict[Pair, Trials]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (kind, use), trials in found.items():
        mean, spread = mean_and_spread(trials.seeds(use))
        rows.append((use, kind, trials.weights, trials.rate, f"{mean:.3f} ± {spread:.3f}"))
    heads = ("use", "kind", "weights", "rate", "nats per letter above the least")
    return Table(heads, tuple(rows), "After the training; ± is one standard deviation over seeds")
