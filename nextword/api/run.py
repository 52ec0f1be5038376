"""`Run`: a trained model that scores, predicts, generates, evaluates, compresses and saves."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nextword.api import compress, decompress, score
from nextword.api import generate as generating
from nextword.api import next as prediction
from nextword.api.arguments import checked
from nextword.api.opened import Name, Opened
from nextword.api.results import Next, Score
from nextword.core.display import markup
from nextword.core.errors import ConfigError
from nextword.core.events import finish
from nextword.evaluation.lm.evidence import TokenEvidence, evidence
from nextword.runs import saved
from nextword.store.writing import new_run

if TYPE_CHECKING:
    from nextword.core.task import Prediction
    from nextword.evaluation.lm.report import Report
    from nextword.probe.result import ProbeResult


class Run(Opened):
    """A trained model with the verbs as its methods; each calls the function of the same name."""

    @checked
    def score(self, text: str) -> Score:
        """Measure how well the model predicts a text; `evaluate` takes files.

        >>> run.score("the cat sat on the mat")
        Score(nll=..., perplexity=..., bits_per_byte=..., 7 tokens)
        """
        return score.score(self, text)

    @checked
    def next(self, context: str = "", top: int | None = None, words: bool = False) -> Next:
        """Predict what comes next: pairs (text, probability), END as ``</s>``; ``top=None``: every token.

        An empty context is the beginning of a sequence. START is left out, since it never comes next.
        ``words=True``: whole words instead of tokens, as `nextword.next` finds them.

        >>> [word for word, p in run.next("the cat sat on the", top=2)]
        ['mat', 'rug']
        """
        if top is not None and top < 0:
            raise ConfigError(f"'top' is {top}; it must be 0 or more, or None for every token")
        return prediction.next(self, context, top, words)

    generate = generating.generate

    @checked
    def stream(
        self,
        prompt: str = "",
        *,
        decode: str = "sample",
        max_tokens: int = 100,
        min_tokens: int = 0,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        typical: float = 1.0,
        seed: int | None = None,
        samples: int = 1,
        beam_size: int = 4,
        length_penalty: float = 0.6,
        n_best: int = 1,
        stop: str | Sequence[str] = (),
        ban: str | Sequence[str] = (),
        no_repeat: int = 0,
        repetition_penalty: float = 1.0,
        unknown: bool = False,
        batch: int = 64,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
    ) -> Iterator[str]:
        """Generate piece by piece, as the tokens are chosen; the arguments are those of `generate`.

        >>> "".join(run.stream("the cat sat on the", decode="greedy"))
        'the cat sat on the mat\\n'
        """
        chosen = generating.settings(generating.settings_in(locals()), set or {})
        return generating.stream(generating.Writer.of(self, generating.Beside(), chosen), prompt)

    @checked
    def predict(
        self,
        inputs: str | Iterable[str],
        *,
        format: str = "",  # noqa: A002 - as the option is called
        pretokenized: bool = False,
        decode: str | None = None,
        beam_size: int | None = None,
        n_best: int | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        alignment: bool = False,
        split: str = "",
        beside: Name | Sequence[Name] | None = None,
        draft: Name | None = None,
        precision: Literal["fp32", "int8"] = "fp32",
        set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
    ) -> list[Prediction]:
        """Predict labels, tags or translations of inputs, by the task of the run.

        >>> run.predict("the cat sat")
        Traceback (most recent call last):
        nextword.core.errors.ConfigError: ... nextword.generate(RUN, prompt=TEXT)
        """
        from nextword.api import predict as predicting

        return predicting.predict(
            self, inputs, format=format, pretokenized=pretokenized, decode=decode, beam_size=beam_size,
            n_best=n_best, max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p,
            seed=seed, alignment=alignment, split=split, beside=beside, draft=draft, precision=precision,
            set=set,
        )  # fmt: skip

    @checked
    def evaluate(
        self,
        *data: Name,
        dynamic: Literal["sgd", "rms"] | None = None,
        html: Name | None = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
    ) -> Report:
        """Measure the model on files: perplexity, bits per byte and the rest of the report.

        ``dynamic`` ("sgd" or "rms"): a copy of a neural model learns from each segment once it is scored.
        ``html`` writes a page with pictures.

        >>> run.evaluate("test.txt").tokens
        14
        """
        from nextword.api import eval as measuring

        options = measuring.EvalOptions(dynamic, html)
        found: Report = finish(measuring.evaluating(self, data, set or {}, options))
        return found

    @checked
    def evidence(self, text: str, top: int = 5) -> list[TokenEvidence]:
        """Explain every token of a text: which members, cached tokens and neighbours gave its probability.

        >>> run.evidence("the cat")[0]
        <TokenEvidence 'the', p=...>
        """
        return evidence(self.model, self.tokenizer, text, top, self.members)

    @checked
    def compress(self, data: bytes) -> bytes:
        """Compress any bytes with this model.

        >>> len(run.compress(b"the cat sat on the mat")) < 60
        True
        """
        return compress.compress(self, data)

    @checked
    def decompress(self, data: bytes, source: str = "") -> bytes:
        """Return what `compress` was given, byte for byte; ``source`` names the file in errors.

        >>> run.decompress(run.compress(b"the cat"))
        b'the cat'
        """
        return decompress.decompress(self, data, source)

    @checked
    def save(self, path: Name, overwrite: bool = False) -> Run:
        """Write the run folder atomically and return the saved run.

        >>> run.save("runs/copy")
        <Run ngram over 14 words, ... n-grams, in runs/copy>
        """
        with new_run(path, overwrite=overwrite) as folder:
            saved.write(self.trained, folder)
        return load(path)

    @checked
    def inspect(
        self,
        what: str,
        text: str | None = None,
        *,
        against: Opened | Name | None = None,
        out: Name | None = None,
        layer: int = 0,
        head: int = 0,
        unit: int = 0,
        set_gate: str = "",
        distance: int = 100,
        places: int = 16,
        tokens: int = 0,
        powers: int = 100,
        neighbours: int = 5,
        words: int = 12,
        beam_size: int = 3,
        max_tokens: int = 8,
        seed: int = 0,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
    ) -> ProbeResult:
        """Look inside: named arrays and pictures; `nextword list probe` lists the probes.

        >>> run.inspect("surprise", "the cat sat on the mat").what
        'surprise'
        """
        asked = {name: value for name, value in locals().items() if name not in ("self", "what", "text")}
        from nextword.api import inspect as inspecting

        return inspecting.inspect(self, what, text, **asked)

    @checked
    def export(self, path: Name, to: str = "arpa") -> Path:
        """Write the model as another program's file.

        >>> run.export("run.arpa").name
        'run.arpa'
        """
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


@checked
def load(run: str | os.PathLike[str] | Run, verify: bool = False) -> Run:
    """Open a saved run by folder, name under ``runs/`` or ``latest``; ``verify`` checks every byte of it.

    >>> nextword.load("runs/tiny")
    <Run ngram over 14 words, ... n-grams, in runs/tiny>
    """
    return run if isinstance(run, Run) else Run(saved.load(run, verify))
