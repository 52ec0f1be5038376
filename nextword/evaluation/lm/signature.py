"""A line that says how a number was measured, in the style of sacreBLEU (Post 2018).

Two numbers can be compared if their lines agree; the line is in every report.
"""

from __future__ import annotations

from functools import cache

from nextword.core.contracts import Carrier, LanguageModel, Tokenizer, context_of, is_probability
from nextword.ngram.model import NgramModel
from nextword.text.backward import BackwardTokenizer
from nextword.text.words import WordTokenizer


def signature(model: LanguageModel, tokenizer: Tokenizer, dynamic: str | None = None) -> str:
    """Write, for example, ``bits|tok:words|unit:line|unk:spelled|ctx:4|lossless:yes|nextword:0.1.0``.

    ``dynamic``: how the model adapted to the text while it was measured, if it did.
    """
    parts = {
        "tok": tokenizer.name,
        "unit": tokenizer.unit,
        "unk": _unknown(tokenizer.forward if isinstance(tokenizer, BackwardTokenizer) else tokenizer),
        "ctx": _context(model, tokenizer),
        "lossless": "yes" if tokenizer.lossless else "no",
    }
    if isinstance(tokenizer, BackwardTokenizer):
        parts["dir"] = "backward"
    if isinstance(model, NgramModel) and model.bits:
        parts["bits"] = str(model.bits)
    if not is_probability(model):
        parts["score"] = "no-probability"
    if dynamic is not None:
        parts["dynamic"] = dynamic
    parts["nextword"] = version()
    return "|".join(["bits", *(f"{key}:{value}" for key, value in parts.items())])


def _context(model: LanguageModel, tokenizer: Tokenizer) -> str:
    """Tell how far back a model looks; ``document`` is added where that goes beyond the line."""
    limit = context_of(model)
    if tokenizer.unit == "line" and isinstance(model, Carrier):
        return "document" if limit is None else f"document/{limit}"
    return "all" if limit is None else str(limit)


@cache
def version() -> str:
    """Return the installed version of nextword."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("nextword")
    except PackageNotFoundError:
        return "unknown"


def _unknown(tokenizer: Tokenizer) -> str:
    """Tell how unknown words count: there are none, they are spelled, or ``<unk>`` in the text is one."""
    if tokenizer.closed:
        return "none"
    is_literal = isinstance(tokenizer, WordTokenizer) and tokenizer.vocab.literal_unknown
    return "literal" if is_literal else "spelled"
