"""How memories are tuned: sizes, θ, temperature and decay on a small grid, weights by EM, on held-out text.

Each memory joins the members that are there already; its settings are those with which the mixture of all of
them predicts the text best [XMU "Smoothing": held-out text decides; Grave et al. 2017 tune θ and λ so].
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from nextword.core import catalog, config
from nextword.core.contracts import START, Tokenizer
from nextword.core.errors import ConfigError
from nextword.core.events import Event, Note, Stage
from nextword.core.settings import Settings
from nextword.evaluation.lm.streams import ScoreStream
from nextword.mixtures.members import Attached, network_of
from nextword.mixtures.memory import Kind
from nextword.mixtures.mixture import tune_weights
from nextword.runs.mixture import Component
from nextword.store.reading import RunFolder, open_run
from nextword.store.writing import new_run
from nextword.training.mixtures.weights import HeldOut

TRIED = 50_000  # first words of the held-out text on which settings are tried
COMPARED = 4_000_000_000  # distances that tuning neighbours may compute
FEWEST = 5_000  # words, however many neighbours there are
SHARPNESS = (0.0, 2.0, 5.0, 10.0, 20.0, 40.0)  # θ times the mean of |h|²
SIZES = (1.0, 0.5, 0.25, 0.125)  # of the size that was asked for
DECAYS = (1.0, 0.999, 0.997, 0.99, 0.97)
SOFTNESS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0)  # τ over the distance from the nearest to the last
FEWER = (1, 4, 16)  # k is divided by these

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Wanted:
    """The memories that were asked for: how large a cache, and of which text the neighbours."""

    cache: int | None = None
    recent: int | None = None
    neighbours: HeldOut | None = None
    sets: Mapping[str, Any] | None = None

    def settings(self, name: str, **given: Any) -> tuple[Settings, set[str]]:
        """The settings of a memory, and the names of those that somebody chose."""
        kind = cast(Kind, catalog.find("memory", name))
        chosen = {key: value for key, value in (self.sets or {}).items() if key.startswith(f"{name}.")}
        found = config.build({name: kind.Settings}, {f"{name}.{k}": v for k, v in given.items()}, chosen)[
            name
        ]
        return found, {key.partition(".")[2] for key in chosen}


@dataclass
class Joined(Component):
    """A member of the mixture to be, and log p of every held-out word."""

    logp_T: Floats


class Joining:
    """Adds memories to the members of a mixture, one after another."""

    def __init__(self, joined: list[Joined], text: HeldOut, tokenizer: Tokenizer, scratch: Path) -> None:
        self.joined, self.text, self.tokenizer, self.scratch = joined, text, tokenizer, scratch
        self.words = int((text.ids != START).sum())  # on which the members are compared
        self._read: dict[int, Any] = {}

    def add(self, wanted: Wanted) -> Generator[Event, None, None]:
        """Everything that was asked for; without a network, a cache is one of words alone."""
        if wanted.cache is not None and not self.networks and wanted.recent is None:
            yield Note("no run is a neural model, so the cache remembers words alone (--recent)")
            wanted = replace(wanted, cache=None, recent=wanted.cache)
        if wanted.cache is not None:
            yield from self._cache(wanted)
        if wanted.recent is not None:
            yield from self._recent(wanted)
        if wanted.neighbours is not None:
            yield from self._neighbours(wanted, wanted.neighbours)

    def recall(self, at: int, attached: Attached) -> Generator[Event, None, Floats]:
        """log p of every word by a memory that looks into member ``at``."""
        from nextword.training.mixtures.features import recalled

        read = yield from self.features(at)
        return recalled(attached.memory, read, self.words)

    def features(self, at: int) -> Generator[Event, None, Any]:
        """The held-out text as member ``at`` reads it; its log p come with it."""
        from nextword.training.mixtures.features import read_text

        if at not in self._read:
            model: Any = self.joined[at].member
            yield Stage(f"read the held-out text with {self.joined[at].name}", self.words, "words")
            path = self.scratch / f"features-{at}.npy"
            self._read[at] = yield from read_text(model, self.text.ids, self.text.documents, path)
            self.joined[at].logp_T = self._read[at].logp_T
        return self._read[at]

    @property
    def networks(self) -> list[int]:
        """The members that are networks."""
        return [at for at, each in enumerate(self.joined) if network_of(each.member) is not None]

    def _network(self, name: str) -> int:
        """The first member that is a network."""
        for at in self.networks:
            return at
        raise ConfigError(
            f"'{name}' looks into a neural model, and none of the runs is one; add one, or use --recent"
        )

    def _cache(self, wanted: Wanted) -> Generator[Event, None, None]:
        """θ at the largest size, then the size, then θ again nearby."""
        from nextword.mixtures.cache import CacheSettings, NeuralCache
        from nextword.training.mixtures.features import recalled

        at = self._network("--cache")
        read = yield from self.features(at)
        given, chosen = wanted.settings("cache", size=wanted.cache)
        settings = cast(CacheSettings, given)
        tried = min(TRIED, self.words)
        scale = 1.0 / max(1e-12, float(np.square(read.keys_TD[: min(4096, tried)]).sum(axis=1).mean()))

        def logp(option: CacheSettings) -> Floats:
            return recalled(NeuralCache(option), read, tried)

        yield Stage("tune the cache")
        if "theta" not in chosen:
            settings = self._best([changed(settings, theta=c * scale) for c in SHARPNESS], logp, tried)
        if "size" not in chosen:
            sizes = sorted({max(1, int(share * settings.size)) for share in SIZES}, reverse=True)
            settings = self._best([changed(settings, size=size) for size in sizes], logp, tried)
        if "theta" not in chosen and settings.theta:
            nearby = [changed(settings, theta=factor * settings.theta) for factor in (0.7, 1.0, 1.4)]
            settings = self._best(nearby, logp, tried)
        whole = recalled(NeuralCache(settings), read, self.words)
        yield from self._join("cache", settings, at, whole)

    def _recent(self, wanted: Wanted) -> Generator[Event, None, None]:
        """Decays and sizes; no network is needed."""
        from nextword.mixtures.recent import RecentSettings, RecentWords

        given, chosen = wanted.settings("recent", size=wanted.recent)
        settings = cast(RecentSettings, given)

        def logp(option: RecentSettings) -> Floats:
            model = RecentWords(option, self.tokenizer.vocab_size, self.tokenizer.closed)
            found = np.asarray(ScoreStream(model, carry=True).push(self.text.ids, self.text.documents))
            return found[self.text.ids != START]

        yield Stage("tune the recent words")
        if "decay" not in chosen:
            settings = self._best([changed(settings, decay=decay) for decay in DECAYS], logp, self.words)
        if "size" not in chosen:
            sizes = sorted({max(1, int(share * settings.size)) for share in SIZES}, reverse=True)
            settings = self._best([changed(settings, size=size) for size in sizes], logp, self.words)
        yield from self._join("recent", settings, None, logp(settings))

    def _neighbours(self, wanted: Wanted, stored: HeldOut) -> Generator[Event, None, None]:
        """The text is stored; the nearest of each held-out word are sought once, and weighed in many ways."""
        from nextword.mixtures.neighbours import NeighboursSettings
        from nextword.training.mixtures.datastore import write_store
        from nextword.training.mixtures.neighbours import Found, find_neighbours

        at = self._network("--neighbours")
        read = yield from self.features(at)
        given, chosen = wanted.settings("neighbours")
        settings = cast(NeighboursSettings, given)
        model: Any = self.joined[at].member
        with new_run(self.scratch / "neighbours") as folder:
            yield from write_store(model, stored.ids, stored.documents, settings, folder)
            folder.write("config.toml", _toml("neighbours", settings))
        part = open_run(self.scratch / "neighbours")
        memory = catalog.find("memory", "neighbours").load(part, settings, self.tokenizer)
        self.words = max(min(FEWEST, self.words), min(self.words, COMPARED // len(memory.words_M)))
        found: Found = yield from find_neighbours(memory, read, self.words)
        if "temperature" not in chosen:
            options = [changed(settings, temperature=c * found.spread) for c in SOFTNESS]
            settings = self._best(options, found.logp, self.words)
        if "k" not in chosen:
            ks = sorted({max(1, settings.k // by) for by in FEWER}, reverse=True)
            settings = self._best([changed(settings, k=k) for k in ks], found.logp, self.words)
        yield from self._join("neighbours", settings, at, found.logp(settings), part)

    def _best(self, options: Sequence[Any], logp: Callable[[Any], Floats], words: int) -> Any:
        """The option with which the mixture of all predicts the first words best."""
        others = [each.logp_T[:words] for each in self.joined]

        def gain(option: Any) -> float:
            return tune_weights([*others, logp(option)[:words]], 200, 1e-4).history[-1]

        return max(options, key=gain)

    def _join(
        self, name: str, settings: Settings, of: int | None, logp_T: Floats, stored: RunFolder | None = None
    ) -> Generator[Event, None, None]:
        """The memory becomes a member; its settings are written, beside what it stores."""
        place = self.scratch / f"{name}-{len(self.joined)}"
        with new_run(place) as folder:
            folder.write("config.toml", _toml(name, settings))
            for file in stored.names if stored is not None else ():
                if file != "config.toml":
                    (stored.path / file).rename(folder.path / file)  # type: ignore[union-attr]
        part, kind = open_run(place), cast(Kind, catalog.find("memory", name))
        member = Attached(kind.load(part, settings, self.tokenizer), of, kind.describe(settings))
        self.joined.append(Joined(name, member, part, logp_T))
        yield Note(f"{name}: {member.told}")


def changed(settings: Any, **values: Any) -> Any:
    """The same settings with other values."""
    return settings.model_copy(update=values)


def _toml(name: str, settings: Settings) -> str:
    return config.to_toml({"memory": settings}, {"kind": name})
