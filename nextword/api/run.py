"""A trained model one can use: `Run` scores, predicts, generates, evaluates, compresses and saves."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from nextword.api import generate as generating
from nextword.api.events import quietly
from nextword.api.results import Next, Score, Text, Token
from nextword.core.contracts import (
    START,
    UNKNOWN,
    Block,
    LanguageModel,
    Parametric,
    Tokenizer,
    is_probability,
)
from nextword.core.errors import DataError
from nextword.core.printable import markup
from nextword.evaluation.compress import compressor as packing
from nextword.evaluation.lm.evidence import TokenEvidence, evidence
from nextword.evaluation.lm.report import Report
from nextword.evaluation.lm.streams import Stream
from nextword.mixtures.mixture import MixtureSettings
from nextword.models.distributions import as_numpy
from nextword.ngram.model import NgramModel
from nextword.runs import saved
from nextword.runs.brief import brief
from nextword.runs.facts import Facts
from nextword.runs.saved import Trained
from nextword.runs.settings import RunSettings
from nextword.store.reading import open_run
from nextword.store.writing import new_run

if TYPE_CHECKING:
    from nextword.probe.seen import Seen


class Run:
    """A model with its tokenizer and settings, in memory or in a run folder."""

    def __init__(self, trained: Trained) -> None:
        self._trained = trained

    @property
    def model(self) -> LanguageModel:
        """The model itself, on the one contract."""
        return cast(LanguageModel, self._trained.model)

    @property
    def tokenizer(self) -> Tokenizer:
        """Text to ids and back."""
        return self._trained.tokenizer

    @property
    def settings(self) -> RunSettings:
        """Every setting it was made with."""
        return self._trained.settings

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """What was measured while it was made."""
        return self._trained.metrics

    @property
    def facts(self) -> Facts:
        """How, from what and on what it was made."""
        return self._trained.facts

    @property
    def path(self) -> Path | None:
        """Its folder; None as long as it is not saved."""
        return None if self._trained.folder is None else self._trained.folder.path

    @property
    def place(self) -> str:
        """Its folder as people write it: relative where it is below the current one."""
        if self.path is None:
            return "memory"
        inside = self.path.is_relative_to(Path.cwd())
        return str(self.path.relative_to(Path.cwd()) if inside else self.path)

    @property
    def is_probability(self) -> bool:
        """Whether its numbers are probabilities; `stupid` gives scores."""
        return is_probability(self.model)

    @property
    def parameters(self) -> int | None:
        """How many numbers a neural model has learned; None for others."""
        return self.model.parameters if isinstance(self.model, Parametric) else None

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the runs and memories of a mixture; empty for others."""
        return self.settings.model.runs if isinstance(self.settings.model, MixtureSettings) else ()

    def score(self, text: str) -> Score:
        """How well the model predicts a text; `evaluate` takes files."""
        data = text.encode("utf-8", "surrogatepass")
        stream, tokens, nats, side = Stream(self.model, carry=True), [], 0.0, 0.0
        for piece in self.tokenizer.encode_blocks([Block(data, True, "the text")], costs=True):
            logp = stream.push(piece.ids, piece.documents)
            side += piece.side_nats
            nats -= float(np.sum(logp, dtype=np.float64))
            tokens += [
                Token(self.tokenizer.piece(int(i)), float(p), int(i) != UNKNOWN)
                for i, p in zip(piece.ids, logp, strict=True)
                if i != START
            ]
        if not tokens:
            raise DataError("the text is empty, so there is nothing to score; give at least one word")
        nll = nats / len(tokens)
        bits = (nats + side) / math.log(2) / len(data) if data else math.inf
        perplexity = math.exp(nll) if nll < 700 else math.inf
        return Score(nll, perplexity, bits, tuple(tokens), self.is_probability)

    def next(self, context: str = "", top: int | None = None) -> Next:
        """What comes next: pairs (text, probability), END as ``</s>``; ``top=None`` gives every word.

        An empty context is the beginning of a sequence. START is left out, since it never comes next.
        """
        ids = as_numpy(self.tokenizer.encode(context), np.int64)
        state = self.model.start(1)
        if len(ids):
            state = self.model.score(ids[None], np.array([len(ids)]), state)[1]
        p_V = np.exp(as_numpy(self.model.next(state), np.float64)[0])
        p_V[START] = -1.0  # last of all
        count = len(p_V) - 1 if top is None else min(max(0, top), len(p_V) - 1)
        likely = np.argpartition(-p_V, count - 1)[:count] if 0 < count < len(p_V) - 1 else np.arange(len(p_V))
        order = likely[np.lexsort((likely, -p_V[likely]))][:count]
        return Next([(self.tokenizer.piece(int(i)), float(p_V[i])) for i in order], self.is_probability)

    def generate(self, prompt: str = "", **settings: Any) -> Text | list[Text]:
        """The prompt continued; a list where ``samples`` or ``n_best`` ask for several texts.

        Settings are those of `nextword generate`: decode, max_tokens, temperature, top_k, top_p, seed, …
        """
        return generating.generate(self, prompt, **settings)

    def stream(self, prompt: str = "", **settings: Any) -> Iterator[str]:
        """`generate` piece by piece, as the words are chosen."""
        return generating.stream(self, prompt, generating.settings(settings))

    def evaluate(
        self,
        *data: str | os.PathLike[str],
        dynamic: str | None = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
    ) -> Report:
        """Measure the model on files: perplexity, bits per byte and the rest of the report.

        ``dynamic`` ("sgd" or "rms"): a copy of a neural model learns from each segment after it was scored.
        """
        from nextword.api import verbs

        found: Report = quietly(verbs.measuring(self, data, dict(set or {}), dynamic))
        return found

    def evidence(self, text: str, top: int = 5) -> list[TokenEvidence]:
        """For every token of a text: which members, cached words and neighbours gave its probability."""
        return evidence(self.model, self.tokenizer, text, top, self.members)

    def compress(self, data: bytes) -> bytes:
        """The bytes, coded with this model; any bytes can be given."""
        return packing.compress(self.model, self.tokenizer, data, self.fingerprint)

    def decompress(self, data: bytes, source: str = "") -> bytes:
        """What `compress` was given, byte for byte."""
        return packing.decompress(self.model, self.tokenizer, data, self.fingerprint, source)

    @cached_property
    def fingerprint(self) -> str:
        """The hash of what this run computes: equal for two trainings that gave the same model."""
        if self._trained.folder is not None:
            return saved.fingerprint(self._trained.folder)
        with tempfile.TemporaryDirectory(prefix="nextword-") as folder:
            target = Path(folder) / "run"
            with new_run(target) as new:
                saved.write(self._trained, new)
            return saved.fingerprint(open_run(target))

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Run:
        """Write the run folder, whole or not at all; returns the saved run."""
        with new_run(path, overwrite=overwrite) as folder:
            saved.write(self._trained, folder)
        return load(path)

    def inspect(self, what: str, text: str | None = None, **asked: Any) -> Seen:
        """Look inside: arrays with names, and pictures; see `nextword inspect` for what can be seen."""
        from nextword.api import inspect as inspecting

        return inspecting.inspect(self, what, text, **asked)

    def export(self, path: str | os.PathLike[str], to: str = "arpa") -> Path:
        """Write the model as another program's file."""
        from nextword.api import exchange

        return exchange.export(self, path, to)

    def describe(self) -> str:
        """One phrase: what kind of model, how large."""
        large = f", {sum(self.model.trie.sizes):,} n-grams" if isinstance(self.model, NgramModel) else ""
        if self.parameters is not None:
            large = f", {self.parameters:,} parameters"
        return f"{self.settings.name} over {self.tokenizer.vocab_size:,} {self.tokenizer.name}{large}"

    def summary(self) -> dict[str, Any]:
        """What `--json` prints of a new run."""
        facts = self._trained.facts
        values: dict[str, Any] = {
            "run": None if self.path is None else self.place,
            "model": self.settings.name,
            "family": self.settings.family,
            "tokenizer": self.tokenizer.name,
            "vocabulary": self.tokenizer.vocab_size,
            "tokens": facts.data.tokens,
            "bytes": facts.data.bytes,
            "seconds": facts.seconds,
            "is_probability": self.is_probability,
        }
        if self.parameters is not None:
            values["parameters"] = self.parameters
        return values | brief(self.metrics)

    def __repr__(self) -> str:
        return f"<Run {self.describe()}, in {self.place}>"

    def _repr_html_(self) -> str:
        rows: Sequence[tuple[str, Any]] = list(self.summary().items())
        cells = "".join(
            f"<tr><th style='text-align:left'>{markup(name)}</th><td>{markup(str(value))}</td></tr>"
            for name, value in rows
        )
        return f"<table>{cells}</table>"


def load(run: str | os.PathLike[str] | Run, verify: bool = False) -> Run:
    """A saved run by folder, name under ``runs/`` or ``latest``; ``verify`` checks every byte of it."""
    return run if isinstance(run, Run) else Run(saved.load(run, verify))
