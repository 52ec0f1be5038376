"""A browser, and a server of small runs: one has a name that would be a script if it were not only text."""

from __future__ import annotations

import pytest
from browsing import EVIL, NAME

LINES = ["the cat sat on the mat .", "the dog sat on the rug .", "the cat saw the dog on the mat ."]
SCRIPTS = [
    "सभी मनुष्यों को गौरव और अधिकारों",
    "人人生而自由在尊严和权利上一律平等",
    "يولد جميع الناس أحرارا متساوين",
]
TEXT = "\n".join([*LINES, *SCRIPTS, f"say {EVIL} now"] * 12) + "\n"


@pytest.fixture(scope="session")
def browser():
    """Chromium, once for all tests of a process."""
    from browsing import chromium

    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder of runs: words, characters, and a small Transformer."""
    import nextword

    place = tmp_path_factory.mktemp("page")
    text = place / "t.txt"
    text.write_text(TEXT, encoding="utf-8")
    runs = place / "runs"
    nextword.train(text, model="ngram", set={"model.order": 3}, out=runs / "words")
    nextword.train(text, model="ngram", tokenizer="characters", set={"model.order": 6}, out=runs / NAME)
    small = {
        "model.hidden": 16, "model.heads": 2, "train.steps": 40, "train.batch": 4, "train.length": 16,
        "train.threads": 1, "train.precision": "fp32",
    }  # fmt: skip
    nextword.train(text, model="transformer", tokenizer="words", set=small, out=runs / "attention")
    return runs


@pytest.fixture(scope="session")
def site(folder):
    """A server of all of them."""
    from served import serving

    with serving(folder / "words", folder / NAME, folder / "attention") as found:
        yield found


@pytest.fixture
def visit(browser, site):
    """Open a screen; at the end, nothing must have gone wrong in it."""
    from contextlib import ExitStack

    from browsing import visiting

    with ExitStack() as stack:
        opened = []

        def open_(hash_: str = "", **how):
            opened.append(stack.enter_context(visiting(browser, f"{site.address}/{hash_}", **how)))
            return opened[-1].page

        yield open_
        for each in opened:
            each.check()
