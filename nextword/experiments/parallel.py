"""Time against length: what must wait for the word before, and what is computed for all words at once.

[IITD-1 "RNN Language Models": recurrent computation is slow; PENN: it cannot be parallelized; MAUSAM]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch

from nextword.core.events import Event, Progress, Stage
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, bars, lines
from nextword.experiments import fitting, timing
from nextword.experiments.finding import Finding, Judge, by_all
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import build, settings_of
from nextword.models.network import Network
from nextword.system import threads

CLAIM = "Recurrent computation is slow: step t waits for step t - 1, so it cannot be parallelized."
SLOW = "recurrent computation is slow"
WAITS = "it costs an RNN, LSTM or GRU time that step t waits for step t - 1"
NEVER = "a recurrent network cannot be parallelized"
ATONCE = "what has no recurrence is computed for all words at once"
CLAIMS = (SLOW, WAITS, NEVER, ATONCE)
LONGER = 1.25  # times as long as without recurrence: more is called slower
WAITING, SCANNED = ("rnn", "lstm", "gru"), "mingru"
WORDS, HIDDEN = 200, 128
SHORT = 16  # words of the rows that are read in parallel
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
FAMILIES: dict[str, tuple[str, Callable[[int], int]]] = {
    "rnn": ("one after another", lambda T: T),
    "lstm": ("one after another", lambda T: T),
    "gru": ("one after another", lambda T: T),
    "mingru": ("a scan in pieces", lambda T: 2 * math.isqrt(T)),
    "window": ("all at once", lambda T: 1),
    "transformer": ("all at once, each pair of words", lambda T: 1),
}  # fmt: skip


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Run one row of growing length forward and backward, with one thread."""
    fitting.refuse("parallel", run)
    lengths, repeats = (LENGTHS[:3], 2) if quick else (LENGTHS, 5)
    yield Stage("read rows of growing length", len(FAMILIES) * len(lengths), "rows")
    found: dict[str, list[float]] = {name: [] for name in FAMILIES}
    with threads.using(1):
        for done, (name, T) in enumerate((name, T) for name in FAMILIES for T in lengths):
            found[name].append(_seconds(_network(name, lengths[-1]), T, repeats))
            yield Progress(done + 1)
        waits: dict[str, float] = {}
        for name, seconds in found.items():
            short = _seconds(_network(name, lengths[-1]), SHORT, repeats, lengths[-1] // SHORT)
            waits[name] = seconds[-1] / short
    last = {name: 1e6 * seconds[-1] / lengths[-1] for name, seconds in found.items()}
    yield from finish(
        ExperimentResult(
            "parallel", "What can be computed at once", 'IITD-1 "RNN Language Models"', CLAIM,
            f"one long row takes the RNN {waits['rnn']:.1f} times, a scan {waits['mingru']:.1f} times as "
            f"long",
            _judged(waits, last, quick),
            f"One row of {lengths[-1]:,} words against the same words in {lengths[-1] // SHORT} rows of "
            f"{SHORT}, which can be read in parallel: processor time forward and backward, one thread.",
            (_waits(waits, lengths[-1]), _picture(found, lengths), _per_word(found, lengths),
             _waiting(last, lengths[-1])),
        ),
        out,
    )  # fmt: skip


def _judged(waits: dict[str, float], last: dict[str, float], quick: bool) -> tuple[Finding, ...]:
    """Judge what waits: more than `LONGER` times as long as a model without recurrence takes."""
    slow = {name: waits[name] > LONGER * waits["window"] for name in WAITING}
    judge = Judge(quick)
    slower = [last[name] > LONGER * last[other] for name in WAITING for other in ("window", "transformer")]
    costs = ", ".join(f"{last[name]:.0f} µs ({name})" for name in (*WAITING, "window", "transformer"))
    judge.measure(SLOW, by_all(slower), f"a word of the long row costs {costs}, on one thread")
    judge.measure(
        WAITS,
        by_all([slow[name] for name in WAITING]),
        f"one long row takes {_times(waits, WAITING)} as long as the same words in parallel rows (more than "
        f"{LONGER:g} times the window's is called waiting)",
    )
    chains = {name: FAMILIES[name][1](LENGTHS[-1]) for name in (*WAITING, SCANNED)}
    is_chain = [chain == LENGTHS[-1] for chain in chains.values()]
    judge.exact(
        NEVER,
        by_all(is_chain),
        f"in a row of {LENGTHS[-1]:,} words {chains['rnn']:,} steps of an RNN, LSTM or GRU wait for each "
        f"other, but only {chains[SCANNED]} of a minGRU, which is recurrent and read by a scan",
    )
    judge.measure(
        ATONCE,
        waits["window"] < LONGER,
        f"{_times(waits, ('window', 'transformer'))} as long (attention has more pairs in a long row)",
    )
    return judge.findings


def _times(waits: dict[str, float], names: tuple[str, ...]) -> str:
    return ", ".join(f"{waits[name]:.1f} ({name})" for name in names) + " times"


def _network(name: str, longest: int) -> Network:
    sets = {"model.hidden": HIDDEN, "model.tied": False}
    if name == "window":
        sets |= {"model.context": 8, "model.embedding": HIDDEN}
    else:
        sets |= {"model.layers": 1}
    if name == "transformer":
        sets |= {"model.context": longest, "model.heads": 2}
    return build(settings_of(name, 0, sets), WORDS).train()


def _seconds(network: Network, T: int, repeats: int, rows: int = 1) -> float:
    """Measure processor time, forward and backward, for rows of T words: the least of some tries."""
    ids_BT = torch.randint(3, WORDS, (rows, T), generator=torch.Generator().manual_seed(T))

    def both_ways() -> None:
        network.zero_grad()
        features_BTD, _ = network.read(ids_BT, network.start(rows))
        torch.autograd.backward(features_BTD.square().mean())

    return min(timing.seconds(both_ways, repeats))


def _waits(waits: dict[str, float], T: int) -> Chart:
    notes = [f"{value:.1f} times" for value in waits.values()]
    unit = f"time of one row of {T:,} words / time of the same words in rows of {SHORT} (1: nothing waits)"
    drawn = bars(list(waits.items()), "What waiting for the word before costs", unit, notes)
    caption = (
        f"The same work on the same processor, once as one row of {T:,} words, once as {T // SHORT} rows "
        "in parallel: what must wait for the word before is slower, what is computed at once is not. "
        "(Attention also has more pairs of words in a long row.)"
    )
    return Chart(drawn, caption, Table(("family", "times as long"), tuple(waits.items())))


def _picture(found: dict[str, list[float]], lengths: tuple[int, ...]) -> Chart:
    series = [
        Series(name, tuple((float(T), 1000 * s) for T, s in zip(lengths, seconds, strict=True)))
        for name, seconds in found.items()
    ]
    drawn = lines(series, "Time to read a row by its length", Axis("words in the row, T", log=True),
                  Axis("milliseconds, forward and backward", log=True))  # fmt: skip
    rows = tuple((T, *(1000 * found[name][i] for name in found)) for i, T in enumerate(lengths))
    caption = (
        f"Milliseconds to run one row forward and backward, one layer of {HIDDEN} units, one thread. "
        "RNN, LSTM and GRU read word by word; the others compute all words of the row together."
    )
    return Chart(drawn, caption, Table(("words", *found), rows))


def _per_word(found: dict[str, list[float]], lengths: tuple[int, ...]) -> Chart:
    series = [
        Series(name, tuple((float(T), 1e6 * s / T) for T, s in zip(lengths, seconds, strict=True)))
        for name, seconds in found.items()
    ]
    drawn = lines(series, "Time per word by the length of the row", Axis("words in the row, T", log=True),
                  Axis("microseconds per word", log=True))  # fmt: skip
    caption = (
        "The same for each word: the fixed cost of a row is spread over its words, and what remains is the "
        "price of one more word. Attention looks at every word before, so a longer row costs it more."
    )
    return Chart(drawn, caption)


def _waiting(last: dict[str, float], T: int) -> Table:
    rows = tuple((name, how, steps(T), last[name]) for name, (how, steps) in FAMILIES.items())
    heads = ("family", "a row is read", f"steps that wait for each other, T = {T:,}", "µs per word")
    return Table(heads, rows, "Why: the longest chain of steps, however many processors there are")
