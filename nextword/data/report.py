"""The report of ``data check``: numbers, places, and advice.

Every sentence names what was found and the setting that handles it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from nextword.core.display import printable

_LONG_LINE = 1_000_000
_MANY_DUPLICATES = 0.05
_MANY_UNSEEN = 0.1


@dataclass(frozen=True)
class Longest:
    """The longest line and its place."""

    bytes: int
    source: str
    line: int


@dataclass(frozen=True)
class CheckReport:
    """The properties of a text, and anything suspicious in it."""

    lines: int
    blank_lines: int
    words: int
    types: int  # distinct words
    bytes: int
    documents: int
    duplicate_lines: int  # lines that repeat an earlier one, other than blank ones
    longest_line: Longest
    unknown_curve: tuple[float, ...]  # share of unseen words in the second tenth, the third, …
    odd_characters: dict[str, int]
    problems: tuple[str, ...]  # with file:line:column
    notes: tuple[str, ...]
    advice: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def __repr__(self) -> str:
        return (
            f"<CheckReport: {self.lines:,} lines, {self.words:,} words, {len(self.problems)} problems, "
            f"{len(self.advice)} pieces of advice>"
        )

    def __str__(self) -> str:
        longest = self.longest_line
        rows = [
            f"{self.lines:,} lines ({self.blank_lines:,} blank, {self.duplicate_lines:,} repeated), "
            f"{self.words:,} words ({self.types:,} distinct), {self.bytes:,} bytes, "
            f"{self.documents:,} documents",
            f"longest line: {longest.bytes:,} bytes ({longest.source}:{longest.line})",
        ]
        if self.unknown_curve:
            shown = " ".join(f"{100 * share:.1f}%" for share in self.unknown_curve)
            rows.append(f"unseen words in each subsequent tenth: {shown}")
        rows += [f"{name}: {count:,}" for name, count in self.odd_characters.items()]
        rows += [f"problem: {problem}" for problem in self.problems]
        rows += [f"note: {note}" for note in self.notes]
        rows += [f"advice: {sentence}" for sentence in self.advice]
        return "\n".join(printable(row) for row in rows)


def advise(
    counts: Mapping[str, int],
    curve: tuple[float, ...],
    longest: Longest,
    odd: Mapping[str, int],
    has_problems: bool,
) -> list[str]:
    """Return advice, the most important first."""
    say = []
    if has_problems:
        say.append("fix the problems first: training stops at the first one")
    full = counts["lines"] - counts["blank_lines"]
    if full and counts["duplicate_lines"] > _MANY_DUPLICATES * full:
        share = counts["duplicate_lines"] / full
        say.append(f"{share:.0%} of the lines repeat earlier ones; deduplicate them for honest figures")
    if longest.bytes > _LONG_LINE:
        say.append(
            f"the longest line has {longest.bytes:,} bytes; split it if lines are meant to be sentences"
        )
    if curve and curve[-1] > _MANY_UNSEEN:
        say.append(
            f"{curve[-1]:.0%} of the words in the last tenth are new; subwords (--tokenizer bpe) "
            "or characters suit such a text better than words"
        )
    if counts["words"] and counts["types"] > 1_000_000:
        say.append("more than a million words are distinct; limit them with --set text.max_vocab=200000")
    if odd.get("odd spaces"):
        say.append("no-break and other Unicode spaces do not separate words; replace them if they should")
    if odd.get("zero-width characters"):
        say.append("zero-width characters and soft hyphens make equal-looking words different; remove them")
    if odd.get("replacement characters"):
        say.append("U+FFFD marks characters lost earlier; look for a better copy of the text")
    if odd.get("control characters"):
        say.append("remove the control characters, which may be terminal codes")
    return say
