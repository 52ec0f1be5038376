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
import sys
from types import ModuleType
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
    "compare": "nextword.api.comparing",
    "compress": "nextword.api.verbs",
    "decompress": "nextword.api.verbs",
    "doctor": "nextword.api.doctor",
    "evaluate": "nextword.api.verbs",
    "export": "nextword.api.exchange",
    "filter": "nextword.api.choosing",
    "generate": "nextword.api.generate",
    "import_": "nextword.api.exchange",
    "inspect": "nextword.api.inspect",
    "lab": "nextword.api.comparing",
    "list_data": "nextword.api.data",
    "load": "nextword.api.run",
    "mix": "nextword.api.mix",
    "rescore": "nextword.api.choosing",
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
    "rescore",
    "score",
    "train",
    "train_tokenizer",
]
# Verbs whose name is also a folder's: importing the folder must not hide the verb.
_SHARED = ("evaluate", "lab", "train")

if TYPE_CHECKING:
    from nextword.api.choosing import filter, rescore  # noqa: A004
    from nextword.api.comparing import compare, lab
    from nextword.api.data import check_data, list_data
    from nextword.api.doctor import doctor
    from nextword.api.exchange import export, import_
    from nextword.api.generate import generate
    from nextword.api.inspect import inspect
    from nextword.api.mix import mix
    from nextword.api.results import Next, Score, Text, Token
    from nextword.api.run import Run, load
    from nextword.api.score import score
    from nextword.api.tokenizer import train_tokenizer
    from nextword.api.train import train
    from nextword.api.verbs import compress, decompress, evaluate
    from nextword.core.errors import NextwordError


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'nextword' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Root(ModuleType):
    """The package: a verb stays a verb when the folder of the same name is imported."""

    def __getattribute__(self, name: str) -> Any:
        return __getattr__(name) if name in _SHARED else super().__getattribute__(name)


sys.modules[__name__].__class__ = _Root
