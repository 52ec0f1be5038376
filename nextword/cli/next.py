"""``nextword next``: what comes next, as bars."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, RunName
from nextword.core.display import printable

if TYPE_CHECKING:
    from nextword.api.next import Answer, Row
    from nextword.evaluation.lm.evidence import TokenEvidence
    from nextword.probe.evidence import EvidenceSource

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LABEL, _BAR = 28, 32  # the widest label and bar
_SEEN = {" ": "␣", "\n": "⏎", "\t": "→"}  # whitespace in a token, made visible


def next_(
    run: RunName,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text so far; '' is the beginning.")],
    against: Annotated[str | None, typer.Option(metavar="RUN2", help="A second run, side by side.")] = None,
    top: Annotated[int, typer.Option(metavar="K", help="How many are shown.")] = 10,
    tokens: Annotated[bool, typer.Option("--tokens", help="Tokens instead of whole words.")] = False,
    why: Annotated[
        bool, typer.Option("--why", help="Say where each probability comes from: counts, backoff, memories.")
    ] = False,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Show which words come next, with their probabilities."""
    from nextword.api import next as asking

    found = asking.answer(run, text, top, tokens, why, against)
    for note in found.notes:
        show.note(note)
    if json:
        show.as_json(found.to_json())
        return
    show.result(_question(found))
    for start, bar, after in _lines(found):
        _print(start, bar, after)
    for line in _rest(found):
        show.result(line)
    if why:
        for line in _reasons(found):
            show.result(line)
    if found.found.ended and found.found.longer >= 0.0005:
        longer = _share(found.found.longer).strip()
        show.note(
            f"'{found.found.ended}' was taken to be a whole word; with {longer} it goes on without a space"
        )
    if found.found.part:
        show.note(f"for the word after '{found.found.part}', put a space at the end of the text")


def _question(found: Answer) -> str:
    """Say what is shown."""
    kind = "" if found.is_probability else " (scores, not probabilities)"
    if found.asks == "completion":
        asked = f"how '{found.found.part}' goes on"
    else:
        asked = f"the next {found.asks}" + (f" after '{found.found.ended}'" if found.found.ended else "")
    names = f": {found.run}" + (f" against {found.against}" if found.against is not None else "")
    return f"{asked}{names}{kind}"


def _lines(found: Answer) -> Iterator[tuple[str, str, str]]:
    """Yield label and number, bar, and what comes after it, of every row."""
    from rich.cells import cell_len, set_cell_size

    labels = [_label(row, found) for row in found.rows]
    width = min(_LABEL, max((cell_len(label) for label in labels), default=0))
    room = shutil.get_terminal_size((80, 24)).columns
    columns = 1 if found.against is None else 2
    bar = max(4, min(_BAR, (room - width - 12) // columns - (0 if columns == 1 else 14)))
    most = max((max(row.probability, row.other or 0.0) for row in found.rows), default=0.0)
    for label, row in zip(labels, found.rows, strict=True):
        if cell_len(label) > width:
            label = set_cell_size(label, width - 1) + "…"
        first = _drawn(row.probability, most, bar)
        start = f"{set_cell_size(label, width)}  {_number(row.probability, found)}  "
        if found.against is None:
            yield start, first, ""
        else:
            ratio = "" if row.ratio is None else f"  {row.ratio:.3g}x"
            second = f"{_number(row.other, found)}  {_drawn(row.other or 0.0, most, bar):<{bar}}{ratio}"
            yield start, f"{first:<{bar}}", f"  {second}"


def _print(start: str, bar: str, after: str) -> None:
    """Print a line; on a terminal the bar has a colour."""
    line = printable(start), printable(bar), printable(after)
    if not sys.stdout.isatty():
        show.result("".join(line).rstrip())
        return
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False, soft_wrap=True).print(Text.assemble(line[0], (line[1], "cyan"), line[2]))


def _rest(found: Answer) -> Iterator[str]:
    """Yield what the rows leave out, if their numbers are probabilities."""
    if not found.is_probability:
        return
    facts, plural = found.found, "tokens" if found.asks == "token" else "words"
    rest = [(f"other {plural}", found.others, ""), (f"unknown {plural}", facts.unknown, "")]
    beginnings = f"  (beginnings of words, each less than {_share(facts.largest).strip()})"
    rest.append(("not searched", facts.left, beginnings if facts.left else ""))
    of = "" if found.against is None else f" ({found.run})"
    for name, p, more in rest:
        if p >= 0.00005:
            yield f"{name}{of}: {_share(p).strip()}{more}"


def _reasons(found: Answer) -> Iterator[str]:
    """Yield why, word by word."""
    from nextword.probe.evidence import EvidenceSource

    if not any(row.why for row in found.rows):
        return
    reasons = [(row, [each for each in map(_reason, row.why) if each]) for row in found.rows]
    if not any(each for _, each in reasons):
        yield f"why: no counts and no memory to name ({found.model}); see: nextword inspect {found.run}"
        return
    yield ""
    yield f"why ({found.model}):"
    for row, each in reasons:
        names = [""] * len(each) if len(each) == 1 else [f"{_visible(name)}: " for name in row.tokens]
        yield f"  {_label(row, found)}"
        yield from (f"    {name}{reason}" for name, reason in zip(names, each, strict=True))
    if any(isinstance(each, EvidenceSource) and each.is_adjusted for row in found.rows for each in row.why):
        yield "  below the highest order, Kneser-Ney counts the different words before an n-gram"


def _reason(source: EvidenceSource | TokenEvidence) -> str:
    """Say in a phrase where a probability comes from; nothing where there is nothing to say."""
    from nextword.probe.evidence import EvidenceSource

    if isinstance(source, EvidenceSource):
        return str(source)
    return source.brief() if len(source.said) > 1 or any(each.seen for each in source.said) else ""


def _label(row: Row, found: Answer) -> str:
    if row.text == "</s>" and row.tokens == ("</s>",):
        return f"(end of the {found.unit})"
    return _visible(row.text) if found.asks == "token" else row.text


def _visible(token: str) -> str:
    return "".join(_SEEN.get(each, each) for each in token)


def _number(p: float | None, found: Answer) -> str:
    if p is None:
        return f"{'-':>8}"
    return _share(p) if found.is_probability else f"{p:8.2g}"


def _share(p: float) -> str:
    """Show a probability as a percentage, eight characters wide."""
    percent = 100 * p
    return f"{percent:6.2f} %" if percent >= 0.005 or p == 0 else f"{percent:.0e} %".rjust(8)


def _drawn(p: float, most: float, width: int) -> str:
    """Draw a bar of at most this width, in eighths of a character."""
    eighths = round(8 * width * p / most) if most > 0 else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
