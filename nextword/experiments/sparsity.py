"""How many n-grams of new text were never seen, and what storing them costs.

[XMU "Sparsity problems of n-gram models", "Main weaknesses of n-gram models"]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from nextword.core.events import Event, Progress, Stage
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.evaluation.lm import orders
from nextword.experiments.finding import Judge
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.texts import QUICK, prepare
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings

CLAIM = (
    "The sparsity problem is severe when n is large, usually n <= 5; all counts of n-grams must be stored."
)
SEVERE = "the larger n, the more n-grams of new text were never seen"
STORED = "all n-grams must be stored, and their number grows with n"
CLAIMS = (SEVERE, STORED)
SMOOTHINGS = ("laplace", "witten-bell", "modified-kneser-ney")


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Count a text order by order, on the run's text or on the embedded corpus."""
    text = yield from prepare(run, most=QUICK if quick else 0)
    order = max(2, text.order)
    yield Stage("count n-grams, order by order")
    facts = list(orders.look(text.ids, text.held, text.vocab_size, order))
    held = orders.sample(text.held)
    yield Stage("measure perplexity", order * len(SMOOTHINGS), "models")
    found: dict[str, list[float]] = {name: [] for name in SMOOTHINGS}
    for done, (n, name) in enumerate((n, name) for n in range(1, order + 1) for name in SMOOTHINGS):
        model = estimation.build(text.ids, text.vocab_size, NgramSettings(order=n, smoothing=name))
        found[name].append(orders.measure(model, held).perplexity)
        yield Progress(done + 1)
    rising = all(a.unseen <= b.unseen for a, b in pairwise(facts))
    top = facts[-1]
    judge = Judge(quick)
    judge.measure(
        SEVERE,
        rising and top.unseen > 0.5,
        f"{facts[0].unseen:.1%} of the words and {top.unseen:.0%} of the {top.n}-grams",
    )
    judge.measure(
        STORED,
        all(a.bytes < b.bytes for a, b in pairwise(facts)),
        f"a model of order {top.n} takes {top.bytes / max(1, text.bytes):.1f} times the bytes of "
        f"its text, of order 1 {facts[0].bytes / max(1, text.bytes):.2f} times",
    )
    yield from finish(
        ExperimentResult(
            "sparsity", "Sparsity and storage of n-grams", 'XMU "Main weaknesses of n-gram models"', CLAIM,
            f"{top.unseen:.0%} of new {top.n}-grams were never seen; storage: "
            f"{top.bytes / max(1, text.bytes):.1f} times the text's bytes",
            judge.findings, f"Measured on {text.about}.",
            (
                Chart(orders.unseen_picture(facts), "Sparsity: the share of held-out n-grams that the "
                        "training text does not have.", orders.table(facts)),
                Chart(orders.bytes_picture(facts, text.bytes), "Storage: bytes of a model of each order."),
                _perplexities(found, order),
            ),
        ),
        out,
    )  # fmt: skip


def _perplexities(found: dict[str, list[float]], order: int) -> Chart:
    rows = tuple((n, *(found[name][n - 1] for name in found)) for n in range(1, order + 1))
    series = [
        Series(name, tuple((float(n), y) for n, y in enumerate(values, start=1)))
        for name, values in found.items()
    ]
    picture = lines(
        series, "Perplexity by order", orders.orders_axis(order), Axis("perplexity of new text", log=True)
    )
    summary = "The gain from a longer context depends on where unseen words get their probability from."
    return Chart(picture, summary, Table(("order", *found), rows))
