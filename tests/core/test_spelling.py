"""Advice for Python callers: options become arguments, commands become calls, other programs' stay."""

from __future__ import annotations

import ast
import re

import pytest
from places import ROOT

from nextword.core.spelling import for_python

OPTION = re.compile(r"(?<![\w-])--[a-z]")
FOREIGN = ("compile-lm --text=yes", "--max-restarts", "--upgrade")


@pytest.mark.parametrize(
    ("typed", "python"),
    [
        ("choose another --out or pass --overwrite", "choose another 'out' or pass overwrite=True"),
        ("add --set train.memory=400M.", 'add set={"train.memory": "400M"}.'),
        ("use --set text.min_count=2 or characters", 'use set={"text.min_count": 2} or characters'),
        ("use --tokenizer bytes", 'use tokenizer="bytes"'),
        ("'--keep' is 'x'", "'keep' is 'x'"),
        ("leave --dynamic out", "leave 'dynamic' out"),
        ("--from needs a model", "'source' needs a model"),
        ("--from 'a' is a lstm", "source='a' is a lstm"),
        ("more than --minutes 0.5", "more than minutes=0.5"),
        ("give its folder with --out RUN", "give its folder with out=RUN"),
        ("--set-gate forget=1,input=0 sets gates", 'set_gate="forget=1,input=0" sets gates'),
        ("run: nextword train DATA --out my-run", 'run: nextword.train(DATA, out="my-run")'),
        ("with 'nextword import a b.arpa --out RUN'", "with 'nextword.import_ a b.arpa out=RUN'"),
        ("nextword mix RUN RUN --tune DATA --out RUN", "nextword.mix(RUN, RUN, tune=DATA, out=RUN)"),
        ("use nextword predict or nextword eval", "use nextword.predict or nextword.evaluate"),
        (
            "run: nextword tokenizer train DATA --tokenizer bpe",
            'run: nextword.train_tokenizer(DATA, name="bpe")',
        ),
        ("this nextword reads up to 3", "this nextword reads up to 3"),
        ("the same command and --resume", "the same call and resume=True"),
        ("compile-lm --text=yes IN OUT", "compile-lm --text=yes IN OUT"),
        ("torchrun (--max-restarts)", "torchrun (--max-restarts)"),
    ],
)
def test_sentence_is_respelled(typed, python):
    assert for_python(typed) == python
    assert for_python(python) == python


def test_argument_has_the_name_of_the_function_that_was_called():
    assert for_python("choose another --out", {"out": "path"}) == "choose another 'path'"


def sentences():
    """Every string of the package that names an option, docstrings and the command line left out."""
    for path in sorted((ROOT / "nextword").rglob("*.py")):
        if path.parts[-2] == "cli" or path.name == "spelling.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        parts = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        for node in ast.walk(tree):
            if id(node) in documents or id(node) in parts:
                continue
            text = ""
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            elif isinstance(node, ast.JoinedStr):
                text = "".join(
                    part.value if isinstance(part, ast.Constant) else "value1" for part in node.values
                )
            if OPTION.search(text) and "var(--" not in text and not text.startswith("--c"):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def test_no_sentence_of_the_package_leaves_an_option_in_python():
    found = dict(sentences())
    assert len(found) > 60
    left = {place: for_python(text) for place, text in found.items()}
    for foreign in FOREIGN:
        left = {place: text.replace(foreign, "") for place, text in left.items()}
    assert [f"{place}: {text}" for place, text in left.items() if OPTION.search(text)] == []
