"""Questions with blanks that check the answer: on the page without a script, in Python by `check`.

[XMU "Chain rule: interactive session": "Help me to verify it"]. A browser compares what is typed with the
pattern of its field, and the style sheet shows whether it fits; so the page needs no script.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nextword.core.display import markup
from nextword.core.errors import ConfigError

DIGITS = 3  # decimals that a blank asks for


@dataclass(frozen=True)
class Blank:
    """One question whose answer is a number."""

    name: str  # how `check` calls it
    question: str
    answer: float
    how: str  # the way to it, shown on demand

    def pattern(self) -> str:
        """Write a pattern that accepts the number with two or more decimals, rounded or exact."""
        forms = dict.fromkeys(f"{self.answer:.{digits}f}" for digits in range(2, 9))
        return "|".join(_loose(form) for form in forms)

    def is_right(self, value: float) -> bool:
        """Tell whether a number is the answer, rounded to two decimals or better."""
        return bool(abs(value - self.answer) <= 0.005)


@dataclass(frozen=True)
class Exercise:
    """Blanks that belong together."""

    title: str
    blanks: tuple[Blank, ...]

    def html(self) -> str:
        """Write a table with one field per row; how to find each answer can be shown."""
        rows = "".join(
            f"<tr><td>{markup(blank.name)}</td><td style='white-space:normal'>{markup(blank.question)}</td>"
            f'<td><input class="blank" aria-label="{markup(blank.question)}" placeholder="?" required '
            f'autocomplete="off" pattern="{markup(blank.pattern())}"><span class="said"></span>'
            f"<details><summary>how</summary>{markup(blank.how)} = {blank.answer:.{DIGITS}f}</details>"
            "</td></tr>"
            for blank in self.blanks
        )
        return (
            f"<p>{markup(self.title)}</p><table><tr><th></th><th>question</th><th>your answer</th></tr>"
            f"{rows}</table>"
        )

    def __str__(self) -> str:
        asked = "\n".join(f"  {blank.name}  {blank.question}" for blank in self.blanks)
        return f"{self.title}\n{asked}"


def check(blanks: Sequence[Blank], name: str, value: float) -> str:
    """Say whether an answer is right, and if not, how to find it."""
    found = {blank.name: blank for blank in blanks}
    if name not in found:
        raise ConfigError(f"unknown blank '{name}'; there are: {', '.join(found)}")
    blank = found[name]
    return f"{name}: right" if blank.is_right(value) else f"{name}: not yet; {blank.how}"


def _loose(form: str) -> str:
    """Write a pattern for the same number with a comma, without the leading 0, or with another minus."""
    sign = "[\\-−]" if form.startswith("-") and float(form) else "[+]?" if float(form) else "[\\-−+]?"
    whole, _, rest = form.lstrip("-").partition(".")
    return f"{sign}{'0?' if whole == '0' else re.escape(whole)}[.,]{rest}0*"
