"""How good written texts are against references: BLEU, chrF, exact match, error rates, and what a job adds.

[PENN "Sequence to sequence"; IITD-2 "Translation"]. A job of text to text (a translation, a summary, a parse)
is a `Measure` of the slot "measure": what it counts beside the rest, and which number decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nextword.core.catalog import find
from nextword.core.errors import ConfigError
from nextword.evaluation.pairs.bleu import Splitter, bleu_of, check_counts, chrf_of, overlap
from nextword.evaluation.pairs.counted import Counted, Floats
from nextword.evaluation.pairs.errors import character_error_rate, exact_match, word_error_rate
from nextword.evaluation.pairs.measure import Measure
from nextword.evaluation.significance import LEVEL, Paired, paired_bootstrap

_ALWAYS = ("bleu", "chrf", "exact_match", "wer", "cer")
_WIDTH = 18


@dataclass(frozen=True)
class TranslationReport:
    """All numbers of an evaluation."""

    bleu: float  # 0 to 100
    chrf: float  # 0 to 100
    exact_match: float  # the share of texts that equal a reference
    wer: float  # errors per word
    cer: float  # errors per character
    signature: str  # of BLEU, as sacrebleu prints it
    chrf_signature: str
    texts: int
    empty: int  # texts without a character
    measure: str = "translation"
    decides: str = "bleu"
    extra: Mapping[str, float] = field(default_factory=dict)  # what the job measures beside the rest
    nll: float | None = None  # nats per token of the references
    perplexity: float | None = None
    tokens: int = 0  # of the references, with the end of each
    decode: str = ""  # how the texts were written, as in "beam of 5"
    seconds: float = 0.0
    other: Against | None = None  # how far another system is from this one
    counted: Mapping[str, Counted] = field(default_factory=dict, repr=False, compare=False)

    def values(self) -> dict[str, float]:
        """Return every number by its name."""
        known = {"nll": self.nll, "perplexity": self.perplexity}
        always = {name: float(getattr(self, name)) for name in _ALWAYS}
        return always | dict(self.extra) | {k: v for k, v in known.items() if v is not None}

    @property
    def deciding(self) -> float | None:
        """The number that says which model is better; None where it was not measured, as a perplexity."""
        return self.values().get(self.decides)

    def each(self, name: str) -> Floats:
        """Return a measure of each text alone."""
        return self._counted(name).each()

    def against(self, other: TranslationReport, rounds: int = 1000, seed: int = 0) -> Against:
        """Compare with another system on the same texts by a paired bootstrap (Koehn 2004)."""
        if self.texts != other.texts or self.measure != other.measure:
            raise ConfigError(
                f"two evaluations can be compared on the same texts only: one has {self.texts:,} texts "
                f"({self.measure}), the other {other.texts:,} ({other.measure}); use the same files"
            )
        return Against(
            {
                name: paired_bootstrap(mine.counts_NC, other._counted(name).counts_NC, mine.of, rounds, seed)
                for name, mine in self.counted.items()
            },
            {name: mine.higher for name, mine in self.counted.items()},
            rounds,
        )

    def beside(self, other: TranslationReport) -> TranslationReport:
        """Return the report with a comparison to that of another system."""
        return replace(self, other=self.against(other))

    def with_scores(self, nats: float, tokens: int, decode: str = "") -> TranslationReport:
        """Return the report with the perplexity of the references under the model, and how it wrote."""
        mean = nats / max(1, tokens)
        perplexity = math.exp(min(mean, 700.0))
        return replace(self, nll=mean, perplexity=perplexity, tokens=tokens, decode=decode)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        about = {
            "signature": self.signature, "chrf_signature": self.chrf_signature, "measure": self.measure,
            "texts": self.texts, "empty": self.empty, "tokens": self.tokens, "decode": self.decode,
            "seconds": self.seconds,
        }  # fmt: skip
        return self.values() | about | ({} if self.other is None else {"against": self.other.to_json()})

    def __str__(self) -> str:
        values = self.values()
        first = sorted(values, key=lambda name: name != self.decides)
        lines = [f"{name.replace('_', ' '):<{_WIDTH - 1}} {_shown(name, values[name])}" for name in first]
        empty = f", {self.empty:,} empty" if self.empty else ""
        lines.append(f"{'texts':<{_WIDTH}}{self.texts:,}{empty}")
        if self.decode:
            lines.append(f"{'decoding':<{_WIDTH}}{self.decode}")
        if self.seconds:
            lines.append(f"{'seconds':<{_WIDTH}}{self.seconds:.2f}")
        lines += [f"{'signature':<{_WIDTH}}{self.signature}", f"{'':<{_WIDTH}}{self.chrf_signature}"]
        if self.other is not None:
            lines += ["", str(self.other)]
        return "\n".join(lines)

    def _counted(self, name: str) -> Counted:
        if name not in self.counted:
            raise ConfigError(f"'{name}' is not measured text by text; there are: {', '.join(self.counted)}")
        return self.counted[name]


@dataclass(frozen=True)
class Against:
    """One system against another on the same texts, by measure."""

    tests: Mapping[str, Paired]
    higher: Mapping[str, bool]
    rounds: int

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a JSON object."""
        return {
            name: {"difference": test.difference, "low": test.low, "high": test.high, "p": test.p}
            for name, test in self.tests.items()
        }

    def __str__(self) -> str:
        head = f"{'':<{_WIDTH}}{'difference':>12}{'95% interval':>22}{'p':>9}"
        return "\n".join([head, *(self._row(name, test) for name, test in self.tests.items())])

    def _row(self, name: str, test: Paired) -> str:
        interval = f"{test.low:+.4g} to {test.high:+.4g}"
        verdict = "no difference shown"
        if test.p < LEVEL:
            verdict = "better" if (test.difference > 0) == self.higher[name] else "worse"
        shown = name.replace("_", " ")
        return f"{shown:<{_WIDTH}}{test.difference:>+12.4g}{interval:>22}{test.p:>9.4f}  {verdict}"


def measured(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    measure: str = "translation",
    splitter: Splitter = "auto",
    seconds: float = 0.0,
) -> TranslationReport:
    """Compare texts with their references; ``references[i]`` are those of ``hypotheses[i]``."""
    check_counts(hypotheses, references)
    job: Measure = find("measure", measure)
    common = overlap(hypotheses, references, splitter)
    counted = {
        "bleu": Counted(common.bleu_N10, bleu_of),
        "chrf": Counted(common.chrf_N18, chrf_of),
        "exact_match": exact_match(hypotheses, references),
        "wer": word_error_rate(hypotheses, references),
        "cer": character_error_rate(hypotheses, references),
    }
    own = job.find(hypotheses, references)
    counted |= own.counted
    return TranslationReport(
        bleu=common.bleu,
        chrf=common.chrf,
        exact_match=counted["exact_match"].value,
        wer=counted["wer"].value,
        cer=counted["cer"].value,
        signature=common.signature,
        chrf_signature=common.chrf_signature,
        texts=len(hypotheses),
        empty=sum(not text.strip() for text in hypotheses),
        measure=measure,
        decides=job.decides,
        extra={name: each.value for name, each in own.counted.items()} | dict(own.other),
        seconds=seconds,
        counted=counted,
    )


def _shown(name: str, value: float) -> str:
    if name in ("bleu", "chrf"):
        return f"{value:.2f}"
    return f"{value:.2%}" if name == "exact_match" else f"{value:.4f}"
