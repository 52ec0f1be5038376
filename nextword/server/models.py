"""The served runs: opened once, reloaded when they are trained again, refused when they are gone or damaged.

A run that was replaced on disk is loaded beside the old one, which answers until the new one is complete;
requests under way finish with the model they began with. What happens to one run does not touch the others.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from nextword.api.opened import Opened
from nextword.api.serve import ServeSettings
from nextword.core.contracts import LanguageModel, Tokenizer
from nextword.core.errors import DamagedError, NextwordError, RunError
from nextword.runs import saved
from nextword.server.errors import ApiError
from nextword.server.worker import Worker
from nextword.store import replace
from nextword.store.manifest import MANIFEST
from nextword.text.backward import BackwardTokenizer

_log = logging.getLogger("nextword.server")
_ENDING = 2.0  # seconds for a thread to end
_LOOK = 0.25  # seconds between two looks at a folder
_DELETED = "the run was deleted; train it again under the same name, and it is served again"
_DAMAGED = "the run is damaged: a file is not what was written; train it again under the same name"
_BROKEN = "the run cannot be opened; the server's log says why"


@dataclass(eq=False)
class Model:
    """A run in memory, and the thread that computes with it."""

    name: str
    opened: Opened
    worker: Worker
    signature: tuple[Any, ...]
    created: int = field(default_factory=lambda: int(time.time()))

    @cached_property  # asked at every request, and a look at all methods of a contract takes time
    def is_language_model(self) -> bool:
        """Tell whether it continues text: a decoder of translations needs a source."""
        trained = self.opened.trained
        return isinstance(trained.model, LanguageModel) and isinstance(trained.vocabulary, Tokenizer)

    @property
    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer of a language model."""
        return self.opened.tokenizer

    @property
    def task(self) -> str:
        """Return the name of its task."""
        return str(self.opened.settings.find_task().name)

    def check_text(self) -> None:
        """Refuse a run that does not continue text from left to right."""
        if not self.is_language_model:
            noun = self.opened.settings.find_task().noun
            raise ApiError(400, f"this run is a {noun}; ask /v1/predict", "not_a_language_model", "model")
        if isinstance(self.opened.trained.vocabulary, BackwardTokenizer):
            raise ApiError(
                400, "this run reads text from its end, and cannot continue one", "backward", "model"
            )


@dataclass(eq=False)
class _Place:
    """One id: the folder, and what is served from it now."""

    name: str
    path: Path
    model: Model | None = None
    problem: tuple[int, str, str] | None = None  # status, code, sentence
    looked: float = 0.0
    loading: asyncio.Task[None] | None = None


class Shelf:
    """All served runs by their ids."""

    def __init__(self, folders: dict[str, Path], settings: ServeSettings) -> None:
        self.settings = settings
        self.is_draining = False
        self.expected: dict[str, Path] = {}  # what will be there when its training is done
        self._places = {name: _Place(name, path) for name, path in folders.items()}

    def open_all(self) -> None:
        """Open every run; raise the error of the first that cannot be."""
        for place in self._places.values():
            place.model = self._load(place.name, place.path)

    def add(self, name: str, path: Path) -> None:
        """Open one more run and serve it."""
        place = _Place(name, path)
        place.model = self._load(name, path)
        self._places = {**self._places, name: place}  # the event loop may be going through them
        keep_for_good()

    @property
    def is_ready(self) -> bool:
        """Tell whether there is a model to ask, and more will be answered."""
        return not self.is_draining and any(place.model is not None for place in self._places.values())

    @property
    def names(self) -> list[str]:
        """Return all ids, in the order of the command."""
        return list(self._places)

    @property
    def loaded(self) -> list[Model]:
        """Return the models in memory, without a look at the disk."""
        return [place.model for place in self._places.values() if place.model is not None]

    @property
    def folders(self) -> dict[str, Path]:
        """Return the folder of every id, also of those that are still being trained."""
        return self.expected | {name: place.path for name, place in self._places.items()}

    async def models(self) -> list[Model]:
        """Return the models that can be asked now."""
        for place in self._places.values():
            await self._look(place)
        return [
            place.model for place in self._places.values() if place.model is not None and not place.problem
        ]

    async def find(self, name: str) -> Model:
        """Return the model of an id; raise the answer for one that is unknown, deleted or damaged."""
        if self.is_draining:
            raise ApiError(503, "the server is ending", "draining", headers={"Retry-After": "5"})
        place = self._places.get(name)
        if place is None:
            known = ", ".join(list(self._places)[:10]) or "none yet"
            raise ApiError(404, f"there is no such model; served: {known}", "model_not_found", "model")
        await self._look(place)
        if place.problem is not None:
            status, code, sentence = place.problem
            raise ApiError(status, f"'{name}': {sentence}", code, "model")
        assert place.model is not None
        return place.model

    async def _look(self, place: _Place) -> None:
        """Notice what happened to a folder; loading goes on beside the answers."""
        now = time.monotonic()
        if now - place.looked < _LOOK or place.loading is not None:
            if place.model is None and place.loading is not None:
                await asyncio.shield(place.loading)
            return
        place.looked = now
        found = signature(place.path)
        if found is None:
            if not replace.leftovers(place.path, "old"):  # between the two renames of an exchange
                place.problem = (404, "model_deleted", _DELETED)
            return
        if place.model is not None and found == place.model.signature:
            place.problem = None
            return
        place.loading = asyncio.ensure_future(self._reload(place))
        if place.problem is not None:
            await asyncio.shield(place.loading)

    async def _reload(self, place: _Place) -> None:
        try:
            model = await asyncio.to_thread(self._load, place.name, place.path, True)
        except NextwordError as error:
            _log.warning("'%s' cannot be opened: %s", place.name, error)
            if signature(place.path) is None or (type(error) is RunError and place.model is not None):
                place.looked = 0.0  # it was replaced meanwhile, or is being: look again
            damaged = isinstance(error, DamagedError)
            place.problem = (503, "model_damaged", _DAMAGED) if damaged else (503, "model_broken", _BROKEN)
        except Exception as error:
            _log.error("'%s' cannot be opened: %s: %s", place.name, type(error).__name__, error)
            place.problem = (503, "model_broken", _BROKEN)
        else:
            before, place.model, place.problem = place.model, model, None
            if before is not None:
                before.worker.close()
        finally:
            place.loading = None

    def _load(self, name: str, path: Path, verify: bool = False) -> Model:
        seen = signature(path)
        opened = Opened(saved.load(path, verify))
        tokenizer = opened.tokenizer if isinstance(opened.trained.vocabulary, Tokenizer) else None
        worker = Worker(name, opened.trained.model, tokenizer, self.settings.rows, self.settings.waiting)
        return Model(name, opened, worker, seen or ())

    def close(self) -> None:
        """End all threads; one that is still busy is not waited for long."""
        for model in self.loaded:
            model.worker.close()
        for model in self.loaded:
            model.worker.join(_ENDING)

    @property
    def under_way(self) -> int:
        """Return how many texts and calls are not finished."""
        return sum(place.model.worker.taken for place in self._places.values() if place.model is not None)


def keep_for_good() -> None:
    """Leave modules and models out of later garbage collections: each would take 0.1 s."""
    gc.collect()
    gc.freeze()


def signature(path: Path) -> tuple[Any, ...] | None:
    """Return what changes when a run is replaced or a file of it is written to; None: there is no run."""
    try:
        folder = os.stat(path)
        os.stat(path / MANIFEST)
        places = sorted(os.path.join(inner, name) for inner, _, names in os.walk(path) for name in names)
        files = [os.stat(place) for place in places]
    except OSError:
        return None
    return (folder.st_dev, folder.st_ino, *((each.st_ino, each.st_size, each.st_mtime_ns) for each in files))
