"""``mix``: interpolate runs and memories, with the weights that predict a held-out text best."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nextword.api.arguments import checked
from nextword.api.opened import Name
from nextword.api.run import Run, load
from nextword.core import catalog, config
from nextword.core.contracts import START, Tokenizer
from nextword.core.display import show_number
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Measure, Note, Stage, finish
from nextword.data.settings import DataSettings
from nextword.data.source import Source
from nextword.evaluation.lm.streams import ScoreStream
from nextword.mixtures.family import SavedMixture
from nextword.mixtures.members import Attached, Member
from nextword.mixtures.mixture import tune_weights
from nextword.runs import saved
from nextword.runs.facts import collect
from nextword.runs.mixture import mixed, settings_like
from nextword.store.names import default_name, mark_latest
from nextword.store.reading import RunFolder
from nextword.store.writing import check_target, new_run, real_path
from nextword.tasks import lm
from nextword.training.mixtures.memories import MemoryRequest, MemoryTuner, MixtureMember
from nextword.training.mixtures.weights import TuningText


@checked
def mix(
    *runs: Name | Run,
    tune: Name,
    out: Name | None = None,
    overwrite: bool = False,
    cache: int | None = None,
    recent: int | None = None,
    neighbours: Name | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> Run:
    """Mix saved runs with weights tuned on a text and save the mixture in ``out`` (default: under ``runs/``).

    Memories: ``cache`` (a neural cache of at most this many tokens), ``recent`` (the same without a network),
    ``neighbours`` (a text in which the nearest neighbours are looked up).

    >>> mixture = nextword.mix("runs/tiny", "runs/short", tune="test.txt", out="runs/mixture")
    >>> mixture.members
    ('tiny', 'short')
    """
    memories = MemoryOptions(cache, recent, neighbours, dict(set or {}))
    made: Run = finish(mixing(runs, tune, out, overwrite=overwrite, memories=memories))
    return made


class MemoryOptions:
    """The memories to add and their settings, checked before anything is read."""

    def __init__(
        self,
        cache: int | None = None,
        recent: int | None = None,
        neighbours: Name | None = None,
        sets: Mapping[str, Any] | None = None,
    ) -> None:
        self.cache, self.recent, self.neighbours = cache, recent, neighbours
        self.data = {key: value for key, value in (sets or {}).items() if key.startswith("data.")}
        self.sets = {key: value for key, value in (sets or {}).items() if key not in self.data}
        groups = {name: catalog.find("memory", name).Settings for name in self._names()}
        for key in self.sets:
            name = key.partition(".")[0]
            if name in catalog.names("memory") and name not in groups:
                raise ConfigError(f"'{key}' is set, but this memory is not part of the mixture; add --{name}")
        sizes = {
            f"{name}.size": size for name, size in (("cache", cache), ("recent", recent)) if size is not None
        }
        config.build(groups, sizes, self.sets)

    def __bool__(self) -> bool:
        return any(each is not None for each in (self.cache, self.recent, self.neighbours))

    def _names(self) -> list[str]:
        given = {"cache": self.cache, "recent": self.recent, "neighbours": self.neighbours}
        return [name for name, value in given.items() if value is not None]

    def wanted(self, run: Run, source: Source | None) -> MemoryRequest:
        """Encode the text of the neighbours."""
        text = None if source is None else _encoded(run.tokenizer, source)
        return MemoryRequest(self.cache, self.recent, text, self.sets)


def mixing(
    runs: Sequence[Name | Run],
    tune: Name,
    out: Name | None = None,
    *,
    overwrite: bool = False,
    memories: MemoryOptions | None = None,
) -> Iterator[Event]:
    """Run `mix` and yield its progress; the last event holds the run."""
    memories = MemoryOptions() if memories is None else memories
    if len(runs) < 2 and not memories:
        raise ConfigError(
            "a mixture needs at least two runs, or a run and a memory; name another run or add --cache"
        )
    opened = [load(run) for run in runs]
    _check(opened, [_folder(run) for run in opened])
    target = default_name("mixture", os.fspath(tune)) if out is None else out
    check_target(target, overwrite)
    data = _changed(opened[0].settings.data, memories.data)
    source = Source.for_reading([tune], data)
    stored = None if memories.neighbours is None else Source.for_training([memories.neighbours], data)
    with tempfile.TemporaryDirectory(prefix=".nextword-", dir=_beside(target)) as scratch:
        text = _encoded(opened[0].tokenizer, source)
        joined = yield from _joined(opened, text, Path(scratch), memories.wanted(opened[0], stored))
        figures = yield from _weighed(joined)
        first = opened[0]
        facts = collect(0, first.facts.data, 0.0)
        made = mixed(
            settings_like(first.settings), joined, figures["weights"], first.tokenizer, facts, [figures]
        )
        with new_run(target, overwrite=overwrite) as folder:
            saved.write(made, folder)
    mark_latest(target)
    yield Done(load(target))


def _changed(settings: DataSettings, sets: Mapping[str, Any]) -> DataSettings:
    """Return how the texts are read: as the first run read its own, with what the user set."""
    given = config.build({"data": DataSettings}, sets)["data"].model_dump(exclude_unset=True)
    return DataSettings(**(settings.model_dump() | given))


def _joined(
    runs: Sequence[Run], text: TuningText, scratch: Path, wanted: MemoryRequest
) -> Generator[Event, None, list[MixtureMember]]:
    """Collect every member with its log p of every held-out token."""
    joined: list[MixtureMember] = []
    for run in runs:
        joined += _members(run, len(joined))
    tuner = MemoryTuner(joined, text, runs[0].tokenizer, scratch)
    looked_into = {each.of - 1 for each in joined if each.of}
    if wanted.cache is not None or wanted.neighbours is not None:
        looked_into |= set(tuner.networks[:1])
    yield Stage("tune", len(joined), "models")
    for at, each in enumerate(joined):
        if at in looked_into:
            yield from tuner.features(at)
        elif not each.of:
            each.logp_T = _logp(each.member, text)
    for each in joined:
        if each.of and isinstance(each.member, Attached):
            each.logp_T = yield from tuner.recall(each.of - 1, each.member)
    yield from tuner.add(wanted)
    for each in joined:
        each.logp_T = each.logp_T[: tuner.tokens]
    return joined


def _members(run: Run, before: int) -> list[MixtureMember]:
    """List a run as a member, or the members of a mixture; ``before``: how many members come before them."""
    folder, nothing = _folder(run), np.zeros(0)
    if not isinstance(run.model, SavedMixture):
        return [MixtureMember(folder.path.name, run.model, folder, nothing)]
    names: Any = run.settings.model
    found = []
    for name, member, part in zip(names.runs, run.model.members, run.model.parts, strict=True):
        if isinstance(member, Attached) and member.of is not None:
            member = Attached(member.memory, member.of + before, member.told)
        found.append(MixtureMember(name, member, part, nothing))
    return found


def _logp(member: Member, text: TuningText) -> Any:
    model = member.memory if isinstance(member, Attached) else member
    found = np.asarray(ScoreStream(model, carry=True).push(text.ids, text.documents), np.float64)
    return found[text.ids != START]


def _weighed(joined: Sequence[MixtureMember]) -> Generator[Event, None, dict[str, Any]]:
    """Tune the weights by EM, and report what each member adds."""
    tuned = tune_weights([each.logp_T for each in joined])
    if tuned.dropped:
        yield Note(f"{tuned.dropped:,} held-out tokens have probability 0 in every run; tuning ignores them")
    nll = -tuned.history[-1]
    figures: dict[str, Any] = {"weights": list(tuned.weights), "tune_nll": nll, "gap": tuned.gap}
    yield Measure(figures)
    steps = [
        f"{'+ ' if at else ''}{each.name} {_perplexity([one.logp_T for one in joined[: at + 1]])}"
        for at, each in enumerate(joined)
    ]
    yield Note(f"held-out perplexity: {', '.join(steps)}")
    shown = ", ".join(f"{weight:.3f}" for weight in tuned.weights)
    yield Note(f"weights: {shown}; held-out nats per token: {nll:.4f}")
    return figures


def _perplexity(logps: Sequence[Any]) -> str:
    nll = -tune_weights(logps, 200, 1e-4).history[-1]
    return show_number(math.exp(nll) if nll < 700 else math.inf)


def _beside(target: Name) -> Path | None:
    """Return the folder of the new run if it exists, so that large files stay on one disk."""
    parent = real_path(target).parent
    return parent if parent.is_dir() else None


def _encoded(tokenizer: Tokenizer, source: Source) -> TuningText:
    return TuningText.of(list(tokenizer.encode_blocks(source.blocks())))


def _folder(run: Run) -> RunFolder:
    folder = run.trained.folder
    if folder is None:
        raise ConfigError('a mixture is made of saved runs; save this one first with run.save("runs/NAME")')
    return folder


def _check(runs: Sequence[Run], folders: Sequence[RunFolder]) -> None:
    """Check that the ids of all runs mean the same."""
    first = folders[0]
    for run, folder in zip(runs[1:], folders[1:], strict=True):
        name = lm.TOKENIZER
        if folder.manifest.files[name].sha256 != first.manifest.files[name].sha256:
            raise ConfigError(
                f"the tokenizers of {_shown(runs[0])} and {_shown(run)} differ; train the second run with "
                f"--tokenizer {runs[0].place}/tokenizer.json"
            )


def _shown(run: Run) -> str:
    return f"'{run.place}' ({run.tokenizer.name}, {run.tokenizer.vocab_size:,})"
