"""The plan of a row, made once for all its seeds: size, speed, steps, and the learning rate that fits it.

One learning rate for all rows is unfair: what suits one modification ruins another. So every row tries a few
rates for a short time, each with a whole schedule; where the best is the first or the last, one more beyond
it. The lowest point of the parabola through the best and its neighbours is the best rate of a short training,
and longer training needs a lower one, by a power of its length (Bjorck et al. 2025). The rate beyond is there
for the parabola alone: it is not chosen itself. All of it is recorded.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import ValidationError

from nextword.comparison.bench.setup import BenchSetup
from nextword.comparison.bench.training import Text, length_of, tokens_of, try_rate, with_budget
from nextword.comparison.rows import read_json, write_json
from nextword.comparison.tokenizers import with_file
from nextword.core.errors import ConfigError, TrainingError
from nextword.core.events import Event, Note, Stage
from nextword.core.settings import Settings
from nextword.models import presets
from nextword.models.counts import count
from nextword.models.transformer import DecoderSettings
from nextword.runs.settings import RunSettings, changed
from nextword.training.budget.trial import try_steps
from nextword.training.order import Conditions

RATES = (3e-3, 1e-2, 3e-2)
_FURTHER = 3.0  # times as high or as low: the next rate beyond the last or the first
SHORT = 0.08  # of the steps that each rate is tried for
HORIZON = 0.32  # the best rate falls with the number of steps to this power
_FEWEST = 20  # steps of a trial
_TURNS = 3  # times that a row and the baseline are timed, by turns
_TIMED = 1.0  # seconds each
_ROUND = 8  # widths are multiples of this
_NEAR = 0.05  # parameters that differ by less are called equal
FOLDER = "plans"
# How a run is computed is written into its row and shown there, but does not make it another row: a bench is
# continued on other machines, which have other precisions.
_RECORDED = ("train.precision", "train.threads")


@dataclass(frozen=True)
class Plan:
    """What is the same for all seeds of a row."""

    preset: str
    key: str
    parameters: int = 0
    operations: float | None = None  # multiply-adds for one token of a forward pass; None: no formula
    sizes: dict[str, int] = field(default_factory=dict)  # changed, to match the parameters
    seconds_per_step: float = 0.0  # of the processor
    relative_speed: float = 1.0  # steps per second, relative to the baseline
    steps: int = 0
    losses: dict[str, float | None] = field(default_factory=dict)  # by learning rate, after the short trial
    rate: float = 0.0
    note: str = ""

    @property
    def speed(self) -> float:
        """Steps per second of the processor."""
        return 1 / self.seconds_per_step if self.seconds_per_step else 0.0


def key_of(setup: BenchSetup, preset: str) -> str:
    """Return the hash of what a row depends on: what its preset and the user set, the texts, the budget."""
    entry = setup.entry(preset)
    values = {key: _value(entry.settings, key) for key in sorted(entry.settings.named - set(_RECORDED))}
    named = {key: str(value) for key, value in values.items() if not isinstance(value, Settings)}
    about = [
        preset, dict(presets.find(preset).settings), named, setup.setup.digest,
        _hashes(setup.setup.tokenizers.values()), asdict(setup.budget), RATES, SHORT,
        HORIZON,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()


def _hashes(files: Iterable[str]) -> list[str]:
    return [hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files]


def _value(settings: RunSettings, key: str) -> Any:
    group, *names = key.split(".")
    found: Any = settings.groups[group]
    for name in names:
        found = getattr(found, name)
    return found


def kept_plan(setup: BenchSetup, preset: str) -> Plan | None:
    """Return the plan that was written; without a rate it is unfinished, and its sweep continues."""
    values = read_json(_path(setup, preset))
    if not isinstance(values, dict) or values.get("key") != key_of(setup, preset):
        return None
    return Plan(**values)


def _path(setup: BenchSetup, preset: str) -> Path:
    return setup.setup.out / FOLDER / f"{setup.entry(preset).label}.json"


class Planner:
    """Makes the plan of every row, or reads it where it was made before."""

    def __init__(self, setup: BenchSetup, text: Text) -> None:
        self.setup, self.text = setup, text
        self._made: dict[str, Plan] = {}

    def settings(self, preset: str, plan: Plan, number: int = 0) -> RunSettings:
        """Return the settings of a run, complete."""
        entries = self.setup.setup.entries
        entry = next(each for each in entries if each.model == preset and each.number == number)
        sized = changed(with_file(self.setup.setup, entry), plan.sizes)
        return with_budget(sized, plan.steps, plan.rate)

    def plan(self, preset: str) -> Generator[Event, None, Plan]:
        """Return the plan of a row; the baseline's is made first."""
        if preset in self._made:
            return self._made[preset]
        baseline = self.setup.rows.baseline.preset
        first = None if preset == baseline else (yield from self.plan(baseline))
        key = key_of(self.setup, preset)
        found = kept_plan(self.setup, preset)
        if found is None:
            found = yield from self._begun(preset, key, first)
        if not found.rate:
            found = yield from self._swept(found)
        self._made[preset] = found
        return found

    def _keep(self, plan: Plan) -> Plan:
        write_json(_path(self.setup, plan.preset), asdict(plan))
        return plan

    def _begun(self, preset: str, key: str, first: Plan | None) -> Generator[Event, None, Plan]:
        """Return a plan with everything but the learning rate."""
        title = self.setup.rows.find(preset).title
        settings = with_file(self.setup.setup, self.setup.entry(preset))
        sizes, note = self._sizes(settings, first)
        settings = changed(settings, sizes)
        parameters, operations = self.counted(settings)
        yield Stage(f"{title}: time some steps")
        seconds, relative = self._timed(settings, first)
        steps = self._steps(settings, first, seconds, operations)
        return self._keep(
            Plan(preset, key, parameters, operations, dict(sizes), seconds, relative, steps, note=note)
        )

    def counted(self, settings: RunSettings) -> tuple[int, float | None]:
        """Count parameters, and operations for a token, by formula."""
        family: Any = settings.find_family()
        parameters = int(family.count_parameters(settings.model, self.text.vocab_size))
        if not isinstance(settings.model, DecoderSettings):
            return parameters, None
        length = length_of(settings.train, settings.model)
        return parameters, count(settings.model, self.text.vocab_size, 1, length).products / length

    def _sizes(self, settings: RunSettings, first: Plan | None) -> tuple[dict[str, int], str]:
        """Return another width where parameters are matched, and a note where none comes near enough."""
        if self.setup.budget.match != "parameters" or first is None:
            return {}, ""
        found = nearest_size(settings, first.parameters, lambda each: self.counted(each)[0])
        off = self.counted(changed(settings, found))[0] / first.parameters - 1
        return found, "" if abs(off) <= _NEAR else f"no width comes nearer than {off:+.0%} parameters"

    def _timed(self, settings: RunSettings, first: Plan | None) -> tuple[float, float]:
        """Return processor seconds per step, and the speed relative to the baseline, timed by turns."""
        baseline = with_file(self.setup.setup, self.setup.entry(self.setup.rows.baseline.preset))
        own, theirs = [], []
        for _ in range(_TURNS):
            if first is not None:
                theirs.append(self._seconds(baseline))
            own.append(self._seconds(settings))
        if first is None:
            return median(own), 1.0
        return median(own), median(b / a for a, b in zip(own, theirs, strict=True))

    def _seconds(self, settings: RunSettings) -> float:
        found = try_steps(settings, self.text.prepared, Conditions(), _TIMED)
        return found.work_per_step or found.seconds_per_step

    def _steps(
        self, settings: RunSettings, first: Plan | None, seconds: float, operations: float | None
    ) -> int:
        """Return the steps of a row: what the budget gives the baseline, matched."""
        budget = self.setup.budget
        if first is None:
            if budget.tokens is not None:
                return max(1, -(-budget.tokens // tokens_of(settings)))
            assert budget.minutes is not None
            return max(1, int(budget.minutes * 60 / seconds))
        if budget.match == "minutes":
            return max(1, round(first.steps * first.seconds_per_step / seconds))
        if budget.match == "operations":
            if operations is None or first.operations is None:
                raise ConfigError(
                    f"'{settings.name}' has no formula for its operations, so they cannot be matched; leave "
                    "the row out, or use --match minutes"
                )
            return max(1, round(first.steps * first.operations / operations))
        return first.steps

    def _swept(self, plan: Plan) -> Generator[Event, None, Plan]:
        """Try the rates; where the best is at an end, one more. What was tried is kept at once."""
        title = self.setup.rows.find(plan.preset).title
        settings = changed(with_file(self.setup.setup, self.setup.entry(plan.preset)), plan.sizes)
        for rate in RATES:
            plan = yield from self._tried(plan, settings, rate, title)
        chosen = best(plan.losses)
        further = {RATES[0]: RATES[0] / _FURTHER, RATES[-1]: RATES[-1] * _FURTHER}.get(chosen or 0.0)
        if further is not None:
            plan = yield from self._tried(plan, settings, further, title)
        losses = dict(sorted(plan.losses.items(), key=lambda each: float(each[0])))
        chosen = long_rate(losses, _short(plan.steps) / plan.steps)
        if chosen is None:
            raise TrainingError(f"{title}: training diverged at every learning rate that was tried")
        yield Note(f"{title}: {plan.steps:,} steps at rate {chosen:g}; {_shown(losses)}")
        return self._keep(replace(plan, losses=losses, rate=chosen))

    def _tried(
        self, plan: Plan, settings: RunSettings, rate: float, title: str
    ) -> Generator[Event, None, Plan]:
        if f"{rate:g}" in plan.losses:
            return plan
        tried = with_budget(settings, _short(plan.steps), rate, early=False)
        loss = yield from try_rate(tried, self.text, f"{title}: rate {rate:g}")
        return self._keep(replace(plan, losses={**plan.losses, f"{rate:g}": loss}))

    def pilot(self, plan: Plan, seeds: int) -> Generator[Event, None, list[float]]:
        """Return losses of the baseline after a short training: the best of the sweep, and other seeds'."""
        path = _path(self.setup, plan.preset).with_name("pilot.json")
        values = read_json(path)
        if isinstance(values, dict) and values.get("key") == plan.key:
            return [float(loss) for loss in values["losses"]]
        settings = with_file(self.setup.setup, self.setup.entry(plan.preset))
        rate = best(plan.losses)
        assert rate is not None  # a plan has one
        losses = [loss for tried, loss in plan.losses.items() if float(tried) == rate and loss is not None]
        for seed in range(1, seeds):
            seeded = changed(settings, {"train.seed": settings.train.seed + seed})
            tried = with_budget(seeded, _short(plan.steps), rate, early=False)
            loss = yield from try_rate(tried, self.text, f"pilot: seed {seed}")
            losses += [] if loss is None else [loss]
        write_json(path, {"key": plan.key, "losses": losses})
        return losses


def _short(steps: int) -> int:
    return max(min(_FEWEST, steps), round(SHORT * steps))


def best(losses: dict[str, float | None]) -> float | None:
    """Return the rate of the lowest loss; None if all diverged."""
    able = [(loss, float(rate)) for rate, loss in losses.items() if loss is not None]
    return min(able)[1] if able else None


def long_rate(losses: dict[str, float | None], share: float) -> float | None:
    """Return the rate for a whole training, from losses after a ``share`` of it; None if all diverged.

    ``losses`` are in the order of their rates. Between two rates that are equally good lies a better one, so
    that rows which differ little get rates that differ little. Without a neighbour on both sides nothing says
    how far the valley goes on: a flat one would end at the highest rate, so the last of ``RATES`` is taken.
    """
    chosen = best(losses)
    if chosen is None:
        return None
    tried = [(math.log(float(rate)), loss) for rate, loss in losses.items()]
    at = next(place for place, (x, _) in enumerate(tried) if x == math.log(chosen))
    around = [(x, y) for x, y in tried[max(0, at - 1) : at + 2] if y is not None]
    lowest = _vertex(around) if len(around) == 3 else math.log(min(RATES[-1], max(RATES[0], chosen)))
    return float(f"{math.exp(lowest) * share**HORIZON:.3g}")


def _vertex(points: Sequence[tuple[float, float]]) -> float:
    """Return where the parabola through three points is lowest; the middle one is the lowest of them."""
    (a, fa), (b, fb), (c, fc) = points
    left, right = (b - a) * (fb - fc), (b - c) * (fb - fa)
    if left == right:
        return b
    return min(c, max(a, b - ((b - a) * left - (b - c) * right) / (left - right) / 2))


def nearest_size(settings: RunSettings, wanted: int, counted: Any) -> dict[str, int]:
    """Return the width, with the inner width in proportion, whose number of parameters is nearest."""
    model: Any = settings.model
    inner = getattr(model, "inner", 0)
    found: list[tuple[int, dict[str, int]]] = []
    for hidden in range(_ROUND, 8 * model.hidden, _ROUND):
        sizes = {"model.hidden": hidden}
        sizes |= {"model.inner": max(1, round(inner * hidden / model.hidden))} if inner else {}
        try:
            found.append((abs(counted(changed(settings, sizes)) - wanted), sizes))
        except (ConfigError, ValidationError):
            continue
    return min(found, key=lambda each: each[0])[1] if found else {}


def _shown(losses: dict[str, float | None]) -> str:
    tried = (f"{rate}: {'diverged' if loss is None else f'{loss:.3f}'}" for rate, loss in losses.items())
    return f"nats per token after {SHORT:.0%} of them by rate: {', '.join(tried)}"
