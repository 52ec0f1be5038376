"""``inspect``: look inside a run, through one probe or all that fit it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from nextword.api.events import finish
from nextword.core import catalog, config
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Note, Stage
from nextword.evaluation.lm.surprise import by_word
from nextword.probe import looking, seen
from nextword.probe.seen import Seen
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject

if TYPE_CHECKING:
    from nextword.api.run import Run

_GROUP = "inspect"


@dataclass(frozen=True)
class Order:
    """What somebody asked `inspect` for."""

    what: tuple[str, ...] = ()  # probes by name; none: all that fit
    text: str | None = None  # None: the run writes one itself; "-": standard input
    against: str | os.PathLike[str] | Run | None = None
    asked: Mapping[str, Any] | None = None  # settings of the probes
    sets: Iterable[str] = ()
    out: str | os.PathLike[str] | None = None


def inspect(run: Run | str | os.PathLike[str], what: str, text: str | None = None, **asked: Any) -> Seen:
    """What a probe sees in a run, as arrays with names; further keywords are those of the command line."""
    against = asked.pop("against", None)
    found: list[Seen] = finish(inspecting(run, Order((what,), text, against, asked)))
    return found[0]


def settings(asked: Mapping[str, Any], sets: Iterable[str] = ()) -> ProbeSettings:
    """Checked settings; ``sets`` are ``key=value`` as typed."""
    values = {**asked, **config.parse_sets(sets)}
    dotted = {f"{_GROUP}.{key.removeprefix(_GROUP + '.')}": value for key, value in values.items()}
    return cast(ProbeSettings, config.build({_GROUP: ProbeSettings}, dotted)[_GROUP])


def inspecting(run: Run | str | os.PathLike[str], order: Order) -> Iterator[Event]:
    """`inspect` with its progress; the last event holds a list of what was seen."""
    from nextword.api.run import load

    chosen = settings(order.asked or {}, order.sets)
    _check(order, chosen)
    text = sys.stdin.read() if order.text == "-" else order.text
    subject = subject_of(load(run), text, chosen.seed)
    against = None if order.against is None else subject_of(load(order.against), text, chosen.seed)
    wanted = order.what or (("gates",) if chosen.set_gate else tuple(looking.fitting(subject)))
    if text is None and wanted != ("beam",):
        yield Note("the run writes the text itself; give your own with --text")
    found = []
    for name in wanted:
        yield Stage(name)
        found.append(looking.look(name, subject, chosen, against if name in _PAIRED else None))
    if order.out is not None:
        path, told = seen.save(found, order.out)
        if told:
            yield Note(told)
        yield Note(f"written: {path}")
    yield Done(found)


_PAIRED = ("gradients", "depth", "surprise")  # probes that look at two runs


def _check(order: Order, chosen: ProbeSettings) -> None:
    """Every mistake that can be told before anything is loaded."""
    for name in order.what:
        catalog.find_path("probe", name)
        if order.against is not None and name not in _PAIRED:
            raise ConfigError(
                f"'--against' goes with {', '.join(_PAIRED)}, and '--what' is {name}; leave one out"
            )
        if chosen.set_gate and name != "gates":
            raise ConfigError(f"'--set-gate' goes with gates, and '--what' is {name}; leave one of them out")
    if order.out is not None:
        seen.check_ending(order.out)


def subject_of(run: Run, text: str | None = None, seed: int = 0) -> Subject:
    """A run as something to look at."""
    name = run.settings.name if run.path is None else run.path.name
    facts = {"tokens": run.facts.data.tokens, "settings": run.settings.model}
    return Subject(name, run.model, run.tokenizer, text, seed, facts, by_word)


def probes(run: Run | str | None = None) -> list[dict[str, Any]]:
    """Every probe, what it shows and what it is for; with a run only those that fit."""
    from nextword.api.run import load

    names = catalog.names("probe") if run is None else looking.fitting(subject_of(load(run)))
    found = [(name, looking.find(name)) for name in names]
    return [{"name": name, "about": probe.about, "for": probe.needs} for name, probe in found]
