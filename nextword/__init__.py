"""nextword: train, compare, inspect and serve any language model, from n-gram counts up, on your own text.

    import nextword
    run = nextword.train("corpus.txt")
    run.score("the students opened their books")
    run.next("the students opened their", top=10)
    run.generate("the students")
    run.evaluate("test.txt")
    run.save("runs/x"); nextword.load("runs/x")

Names are loaded when first used: importing the package itself costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> the module that holds it.
_PUBLIC = {
    "Next": "nextword.api.results",
    "NextwordError": "nextword.core.errors",
    "Run": "nextword.api.run",
    "Score": "nextword.api.results",
    "Text": "nextword.api.results",
    "Token": "nextword.api.results",
    "check_data": "nextword.api.data",
    "compare": "nextword.api.compare",
    "compress": "nextword.api.compress",
    "decompress": "nextword.api.decompress",
    "doctor": "nextword.api.doctor",
    "estimate": "nextword.api.estimate",
    "evaluate": "nextword.api.eval",
    "export": "nextword.api.export",
    "filter": "nextword.api.filter",
    "generate": "nextword.api.generate",
    "import_": "nextword.api.import_",
    "inspect": "nextword.api.inspect",
    "lab": "nextword.api.lab",
    "list_data": "nextword.api.data",
    "load": "nextword.api.run",
    "mix": "nextword.api.mix",
    "next": "nextword.api.next",
    "predict": "nextword.api.predict",
    "rescore": "nextword.api.rescore",
    "score": "nextword.api.score",
    "train": "nextword.api.train",
    "train_tokenizer": "nextword.api.tokenizer",
}
__all__ = [
    "Next",
    "NextwordError",
    "Run",
    "Score",
    "Text",
    "Token",
    "__version__",
    "check_data",
    "compare",
    "compress",
    "decompress",
    "doctor",
    "estimate",
    "evaluate",
    "export",
    "filter",
    "generate",
    "import_",
    "inspect",
    "lab",
    "list_data",
    "load",
    "mix",
    "next",
    "predict",
    "rescore",
    "score",
    "train",
    "train_tokenizer",
]

if TYPE_CHECKING:
    from nextword.api.compare import compare
    from nextword.api.compress import compress
    from nextword.api.data import check_data, list_data
    from nextword.api.decompress import decompress
    from nextword.api.doctor import doctor
    from nextword.api.estimate import estimate
    from nextword.api.eval import evaluate
    from nextword.api.export import export
    from nextword.api.filter import filter  # noqa: A004
    from nextword.api.generate import generate
    from nextword.api.import_ import import_
    from nextword.api.inspect import inspect
    from nextword.api.lab import lab
    from nextword.api.mix import mix
    from nextword.api.next import next  # noqa: A004
    from nextword.api.predict import predict
    from nextword.api.rescore import rescore
    from nextword.api.results import Next, Score, Text, Token
    from nextword.api.run import Run, load
    from nextword.api.score import score
    from nextword.api.tokenizer import train_tokenizer
    from nextword.api.train import train
    from nextword.core.errors import NextwordError


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'nextword' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
