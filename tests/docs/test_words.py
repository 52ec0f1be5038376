"""A word list for all prose: phrases that read like a translation, and spellings other than ours.

Users search for "resume", "NaN" and "out of memory", so that is what messages, docstrings, comments and
documents say. A finding names file and line, the phrase, and what to write instead. Spelling is British
with -ize, as in the Oxford dictionary: colour, normalize, analyse.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from places import ROOT


@dataclass(frozen=True)
class Rule:
    """A phrase that is not written, what to write instead, and an example that must be found."""

    phrase: str  # a regular expression; a space matches any whitespace; a match of the group "fine" is fine
    instead: str
    example: str

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.phrase.replace(" ", r"\s+"), re.IGNORECASE)

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Where the phrase stands in a text."""
        return (found for found in self.pattern.finditer(text) if not found.groupdict().get("fine"))


# Phrases that read like a translation: correct, but nobody says or searches for them.
PHRASES = [
    Rule(
        r"(?P<fine>there )?\bis no (?!longer\b)",
        "is not a …; of a name: unknown <kind> 'x'",
        "'x' is no smoothing",
    ),
    Rule(r"(?P<fine>there )?\bare no (?!longer\b)", "are not …", "bytes that are no character"),
    Rule(r"\bno number any ?more\b", "NaN or infinite", "the loss is no number any more"),
    Rule(r"\bnot to be had\b", "is not available, is not installed", "torch is not to be had"),
    Rule(r"\bgone on (from|with)\b", "resumed", "it cannot be gone on from"),
    Rule(r"\bgo(es)? on (with|from) (--|the same command)", "resume it with …", "go on with --resume"),
    Rule(r"\b(has|had|have) not ended\b", "is unfinished", "a training that has not ended"),
    Rule(r"\btrainings\b", "training runs", "before long trainings"),
    Rule(r"\ba training (that|which|has|was|is)\b", "a training run that …", "a training that was stopped"),
    Rule(r"\bby lot\b", "at random", "words are drawn by lot"),
    Rule(r"\banew\b", "start over, again", "begin anew"),
    Rule(r"\bfor want of\b", "for lack of", "for want of time"),
    Rule(r"\bsittings?\b", "session, training run", "in earlier sittings"),
    Rule(r"\bmemory (is|was) not enough\b", "out of memory", "the memory is not enough"),
    Rule(r"\b(some|any)body\b", "the user, another process, …", "somebody is writing"),
    Rule(r"\blearnt\b", "learned; of a run: trained", "what was learnt is saved"),
    Rule(
        r"\b(is|are|was|were|be|and|as .{1,20}) told\b", "reported, printed, noted", "what is found is told"
    ),
    Rule(r"\btold apart\b", "distinguished", "colours that are told apart"),
    Rule(r"\bset aside\b", "renamed, skipped", "a damaged checkpoint is set aside"),
    Rule(r"\bset back\b(?! (changes|is|keeps))", "reset", "the state is set back"),
    Rule(r"\b(at least|up to|from|of|for|by) so (few|many|much)\b", "this many", "from so many rows on"),
    Rule(
        r"\bdo(es)? not go (with|together)\b", "does not work with, contradict", "prune does not go with mle"
    ),
    Rule(r"\bhalf a surrogate pair\b", "a lone surrogate", "the text holds half a surrogate pair"),
    Rule(r"\bwhite[- ]space\b(?!:)", "whitespace", "white-space words"),  # CSS has white-space:
    Rule(r"\bwhole or not at all\b", "atomically", "written whole or not at all"),
    Rule(r"\bcomes twice\b", "is listed twice, is duplicated", "a key comes twice"),
    Rule(r"\b(whilst|hence|thus)\b", "while, so", "hence it is slow"),
]

# American spellings, and -ise: one spelling everywhere, so that a search finds everything.
_ISE = (
    "normal token initial optim regular general organ recogn serial parametr quant vector real summar minim "
    "maxim synchron visual factor discret random penal standard custom categor util special local character "
    "memor priorit author central capital emphas final equal linear material modern symbol"
)
SPELLINGS = [
    *(
        Rule(rf"\b\w*{american}(?=s|ed|ing|al|able|ful|ite|less|\b)", british, american)
        for american, british in {
            "neighbor": "neighbour",
            "behavior": "behaviour",
            "color": "colour",
            "favor": "favour",
            "honor": "honour",
            "harbor": "harbour",
        }.items()
    ),
    Rule(r"\bcenter(s|ed|ing)?\b", "centre, centred", "the center of a bin"),
    Rule(r"\bgray\b", "grey", "gray lines"),
    Rule(
        r"\b(label|model|cancel|travel|signal|level)(ed|ing|er)\b", "double the l: labelled", "labeled data"
    ),
    Rule(r"\b(analy|paraly|cataly)z(e[ds]?|ing)\b", "analyse", "analyze the text"),
    Rule(
        rf"\b\w*({'|'.join(_ISE.split())})is(e[ds]?|ers?|ing|ations?)\b",
        "-ize: normalize",
        "nothing is normalised",
    ),
]
# Names of other people's programs in a sentence or a style: CSS properties and matplotlib's, not prose.
_FOREIGN = re.compile(r"[-_.]color\b|\bcolor(?=[:=(_])|\b\w*color=|\bcolor-scheme\b|text-anchor|\blicense\b")


@dataclass(frozen=True)
class Finding:
    place: str
    phrase: str
    instead: str

    def __str__(self) -> str:
        return f"{self.place}: {self.phrase!r} -> write: {self.instead}"


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """The strings and comments of a Python file, or the whole of a document, each with its first line."""
    text = path.read_text()
    if path.suffix != ".py":
        yield 1, text
        return
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            yield token.start[0], token.string


def findings_in(path: Path, shown: str) -> Iterator[Finding]:
    """What a file should say in other words."""
    for first, text in prose_of(path):
        for rule in PHRASES + SPELLINGS:
            for found in rule.matches(text):
                around = text[max(0, found.start() - 12) : found.end() + 8]
                if rule in SPELLINGS and (_FOREIGN.search(around) or _is_name(text, found.start())):
                    continue
                line = first + text.count("\n", 0, found.start())
                yield Finding(f"{shown}:{line}", " ".join(found[0].split()), rule.instead)


def _is_name(text: str, at: int) -> bool:
    """Whether a place is in a string of one word or between backticks: a name, which is spelled as it is."""
    start = text.rfind("\n", 0, at) + 1
    return " " not in text or text.count("`", start, at) % 2 == 1 or text.count("```", 0, at) % 2 == 1


def part_of(path: Path) -> str:
    """The folder of the package or the document that a file belongs to."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[: 2 if parts[0] == "nextword" else 1])


def files() -> list[Path]:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    return documents + sorted((ROOT / "nextword").rglob("*.py"))


@pytest.mark.parametrize("part", sorted({part_of(path) for path in files()}))
def test_prose_is_plain_and_spelled_in_one_way(part: str) -> None:
    mine = [path for path in files() if part_of(path) == part]
    found = [finding for path in mine for finding in findings_in(path, path.relative_to(ROOT).as_posix())]
    assert not found, "\n" + "\n".join(str(finding) for finding in found)


@pytest.mark.parametrize("rule", PHRASES + SPELLINGS, ids=lambda rule: rule.example)
def test_each_rule_finds_its_example_in_a_comment(rule: Rule, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(f"x = 1\n# example: {rule.example}\n")
    assert Finding("example.py:2", *_said(rule)) in list(findings_in(path, "example.py"))


def _said(rule: Rule) -> tuple[str, str]:
    return next(rule.matches(rule.example))[0].strip(), rule.instead


@pytest.mark.parametrize(
    "text",
    [
        "there is no such file",
        "it is no longer needed",
        "neighbours and their colours, normalized; otherwise precise",
        "the noise is realistic, an exercise in optimism",
        "stroke-color:red",
        "the option `color` of matplotlib",
        "analyse the behaviour",
    ],
)
def test_plain_prose_passes(text: str, tmp_path: Path) -> None:
    path = tmp_path / "example.md"
    path.write_text(f"{text}\n")
    assert not list(findings_in(path, "example.md"))
