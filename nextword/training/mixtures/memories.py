"""Tune memories on held-out text: size, θ, temperature and decay on a small grid, weights by EM.

Each memory is added to the members there are; its settings are those with which the mixture of all of them
predicts the text best [XMU "Smoothing": held-out text decides; Grave et al. 2017 tune θ and λ this way].
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
from nextword.training.mixtures.weights import TuningText

TRIED = 50_000  # first tokens of the held-out text, on which settings are tried
COMPARED = 4_000_000_000  # distances that tuning neighbours may compute
FEWEST = 5_000  # tokens, however many neighbours there are
SHARPNESS = (0.0, 2.0, 5.0, 10.0, 20.0, 40.0)  # θ times the mean of |h|²
SIZES = (1.0, 0.5, 0.25, 0.125)  # of the requested size
DECAYS = (1.0, 0.999, 0.997, 0.99, 0.97)
SOFTNESS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0)  # τ over the distance from the nearest to the last
FEWER = (1, 4, 16)  # k is divided by these

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MemoryRequest:
    """The memories to add: the size of a cache, the text of the neighbours."""

    cache: int | None = None
    recent: int | None = None
    neighbours: TuningText | None = None
    sets: Mapping[str, Any] | None = None

    def settings(self, name: str, **given: Any) -> tuple[Settings, set[str]]:
        """Return the settings of a memory, and the names of those that the user set."""
        kind = cast(Kind, catalog.find("memory", name))
        chosen = {key: value for key, value in (self.sets or {}).items() if key.startswith(f"{name}.")}
        found = config.build({name: kind.Settings}, {f"{name}.{k}": v for k, v in given.items()}, chosen)[
            name
        ]
        return found, {key.partition(".")[2] for key in chosen}


@dataclass
class MixtureMember(Component):
    """A member of the mixture, and log p of every held-out token under it."""

    logp_T: Floats


class MemoryTuner:
    """Tunes memories and adds them to the members of a mixture, one after another."""

    def __init__(
        self, joined: list[MixtureMember], text: TuningText, tokenizer: Tokenizer, scratch: Path
    ) -> None:
        self.joined, self.text, self.tokenizer, self.scratch = joined, text, tokenizer, scratch
        self.tokens = int((text.ids != START).sum())  # tokens on which the members are compared
        self._read: dict[int, Any] = {}

    def add(self, wanted: MemoryRequest) -> Generator[Event, None, None]:
        """Add every requested memory; without a network, a cache becomes one of recent tokens."""
        if wanted.cache is not None and not self.networks and wanted.recent is None:
            yield Note("none of the runs is a neural model, so the cache is one of recent words (--recent)")
            wanted = replace(wanted, cache=None, recent=wanted.cache)
        if wanted.cache is not None:
            yield from self._cache(wanted)
        if wanted.recent is not None:
            yield from self._recent(wanted)
        if wanted.neighbours is not None:
            yield from self._neighbours(wanted, wanted.neighbours)

    def recall(self, at: int, attached: Attached) -> Generator[Event, None, Floats]:
        """Return log p of every token under a memory that reads the features of member ``at``."""
        from nextword.training.mixtures.features import recalled

        read = yield from self.features(at)
        return recalled(attached.memory, read, self.tokens)

    def features(self, at: int) -> Generator[Event, None, Any]:
        """Read the held-out text with member ``at``: features, tokens and their log p."""
        from nextword.training.mixtures.features import read_text

        if at not in self._read:
            model: Any = self.joined[at].member
            yield Stage(f"read the held-out text with {self.joined[at].name}", self.tokens, "tokens")
            path = self.scratch / f"features-{at}.npy"
            self._read[at] = yield from read_text(model, self.text.ids, self.text.documents, path)
            self.joined[at].logp_T = self._read[at].logp_T
        return self._read[at]

    @property
    def networks(self) -> list[int]:
        """Return the numbers of the members that are networks."""
        return [at for at, each in enumerate(self.joined) if network_of(each.member) is not None]

    def _network(self, name: str) -> int:
        """Return the number of the first member that is a network."""
        for at in self.networks:
            return at
        raise ConfigError(
            f"'{name}' needs a neural model, and none of the runs is one; add one, or use --recent"
        )

    def _cache(self, wanted: MemoryRequest) -> Generator[Event, None, None]:
        """Tune θ at the largest size, then the size, then θ again nearby."""
        from nextword.mixtures.cache import CacheSettings, NeuralCache
        from nextword.training.mixtures.features import recalled

        at = self._network("--cache")
        read = yield from self.features(at)
        given, chosen = wanted.settings("cache", size=wanted.cache)
        settings = cast(CacheSettings, given)
        tried = min(TRIED, self.tokens)
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
        whole = recalled(NeuralCache(settings), read, self.tokens)
        yield from self._join("cache", settings, at, whole)

    def _recent(self, wanted: MemoryRequest) -> Generator[Event, None, None]:
        """Tune decay, then size; no network is needed."""
        from nextword.mixtures.recent import RecentSettings, RecentWords

        given, chosen = wanted.settings("recent", size=wanted.recent)
        settings = cast(RecentSettings, given)

        def logp(option: RecentSettings) -> Floats:
            model = RecentWords(option, self.tokenizer.vocab_size, self.tokenizer.closed)
            found = np.asarray(ScoreStream(model, carry=True).push(self.text.ids, self.text.documents))
            return found[self.text.ids != START]

        yield Stage("tune the recent words")
        if "decay" not in chosen:
            settings = self._best([changed(settings, decay=decay) for decay in DECAYS], logp, self.tokens)
        if "size" not in chosen:
            sizes = sorted({max(1, int(share * settings.size)) for share in SIZES}, reverse=True)
            settings = self._best([changed(settings, size=size) for size in sizes], logp, self.tokens)
        yield from self._join("recent", settings, None, logp(settings))

    def _neighbours(self, wanted: MemoryRequest, stored: TuningText) -> Generator[Event, None, None]:
        """Store the text, find the neighbours of each held-out token once, then tune temperature and k."""
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
        self.tokens = max(min(FEWEST, self.tokens), min(self.tokens, COMPARED // len(memory.words_M)))
        found: Found = yield from find_neighbours(memory, read, self.tokens)
        if "temperature" not in chosen:
            options = [changed(settings, temperature=c * found.spread) for c in SOFTNESS]
            settings = self._best(options, found.logp, self.tokens)
        if "k" not in chosen:
            ks = sorted({max(1, settings.k // by) for by in FEWER}, reverse=True)
            settings = self._best([changed(settings, k=k) for k in ks], found.logp, self.tokens)
        yield from self._join("neighbours", settings, at, found.logp(settings), part)

    def _best(self, options: Sequence[Any], logp: Callable[[Any], Floats], tokens: int) -> Any:
        """Return the option with which the mixture of all predicts the first tokens best."""
        others = [each.logp_T[:tokens] for each in self.joined]

        def gain(option: Any) -> float:
            return tune_weights([*others, logp(option)[:tokens]], 200, 1e-4).history[-1]

        return max(options, key=gain)

    def _join(
        self, name: str, settings: Settings, of: int | None, logp_T: Floats, stored: RunFolder | None = None
    ) -> Generator[Event, None, None]:
        """Make the memory a member; write its settings, and move what it stores beside them."""
        place = self.scratch / f"{name}-{len(self.joined)}"
        with new_run(place) as folder:
            folder.write("config.toml", _toml(name, settings))
            for file in stored.names if stored is not None else ():
                if file != "config.toml":
                    (stored.path / file).rename(folder.path / file)  # type: ignore[union-attr]
        part, kind = open_run(place), cast(Kind, catalog.find("memory", name))
        member = Attached(kind.load(part, settings, self.tokenizer), of, kind.describe(settings))
        self.joined.append(MixtureMember(name, member, part, logp_T))
        yield Note(f"{name}: {member.told}")


def changed(settings: Any, **values: Any) -> Any:
    """Return the same settings with other values."""
    return settings.model_copy(update=values)


def _toml(name: str, settings: Settings) -> str:
    return config.to_toml({"memory": settings}, {"kind": name})
