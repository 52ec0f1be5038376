"""`Run`: a trained model that scores, predicts, generates, evaluates, compresses and saves."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nextword.api import compress, decompress, generate, score
from nextword.api import next as prediction
from nextword.api.opened import Name, Opened
from nextword.api.results import Next, Score, Text
from nextword.core.events import result_of
from nextword.core.printable import markup
from nextword.evaluation.lm.evidence import TokenEvidence, evidence
from nextword.runs import saved
from nextword.store.writing import new_run

if TYPE_CHECKING:
    from nextword.core.task import Prediction
    from nextword.evaluation.lm.report import Report
    from nextword.probe.result import ProbeResult


class Run(Opened):
    """A trained model with the verbs as its methods; each calls the function of the same name."""

    def score(self, text: str) -> Score:
        """Measure how well the model predicts a text; `evaluate` takes files."""
        return score.score(self, text)

    def next(self, context: str = "", top: int | None = None, words: bool = False) -> Next:
        """Predict what comes next: pairs (text, probability), END as ``</s>``; ``top=None``: every token.

        An empty context is the beginning of a sequence. START is left out, since it never comes next.
        ``words=True``: whole words instead of tokens, as `nextword.next` finds them.
        """
        return prediction.next(self, context, top, words)

    def generate(self, prompt: str = "", **settings: Any) -> Text | list[Text]:
        """Continue the prompt; return a list if ``samples`` or ``n_best`` ask for several texts.

        Settings are those of `nextword generate`: decode, max_tokens, temperature, top_k, top_p, seed, …
        """
        return generate.generate(self, prompt, **settings)

    def stream(self, prompt: str = "", **settings: Any) -> Iterator[str]:
        """Generate piece by piece, as the tokens are chosen."""
        return generate.stream(self, prompt, generate.settings(settings))

    def predict(self, inputs: str | Iterable[str]) -> list[Prediction]:
        """Predict labels, tags or translations of inputs, by the task of the run."""
        from nextword.api import predict as predicting

        return predicting.predict(self, inputs)

    def evaluate(
        self,
        *data: Name,
        dynamic: str | None = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
    ) -> Report:
        """Measure the model on files: perplexity, bits per byte and the rest of the report.

        ``dynamic`` ("sgd" or "rms"): a copy of a neural model learns from each segment once it is scored.
        """
        from nextword.api import eval as measuring

        found: Report = result_of(measuring.evaluating(self, data, set or {}, dynamic))
        return found

    def evidence(self, text: str, top: int = 5) -> list[TokenEvidence]:
        """Explain every token of a text: which members, cached tokens and neighbours gave its probability."""
        return evidence(self.model, self.tokenizer, text, top, self.members)

    def compress(self, data: bytes) -> bytes:
        """Compress any bytes with this model."""
        return compress.compress(self, data)

    def decompress(self, data: bytes, source: str = "") -> bytes:
        """Return what `compress` was given, byte for byte; ``source`` names the file in errors."""
        return decompress.decompress(self, data, source)

    def save(self, path: Name, overwrite: bool = False) -> Run:
        """Write the run folder atomically and return the saved run."""
        with new_run(path, overwrite=overwrite) as folder:
            saved.write(self.trained, folder)
        return load(path)

    def inspect(self, what: str, text: str | None = None, **asked: Any) -> ProbeResult:
        """Look inside: named arrays and pictures; `nextword list probe` lists the probes."""
        from nextword.api import inspect as inspecting

        return inspecting.inspect(self, what, text, **asked)

    def export(self, path: Name, to: str = "arpa") -> Path:
        """Write the model as another program's file."""
        from nextword.api import export as exporting

        return exporting.export(self, path, to)

    def __repr__(self) -> str:
        return f"<Run {self.describe()}, in {self.place}>"

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{markup(name)}</th><td>{markup(str(value))}</td></tr>"
            for name, value in self.summary().items()
        )
        return f"<table>{cells}</table>"


def load(run: str | os.PathLike[str] | Run, verify: bool = False) -> Run:
    """Open a saved run by folder, name under ``runs/`` or ``latest``; ``verify`` checks every byte of it."""
    return run if isinstance(run, Run) else Run(saved.load(run, verify))
