"""Findings: one verdict for each part of a slide's claim, and the verdict of the whole, which follows.

A finding is exact where more steps, seeds or text cannot change it: arithmetic, counting, algebra. All
others need the full experiment: in quick mode they are left open, so that a quick run never contradicts a
full one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from nextword.evaluation.significance import LEVEL

QUICK = "not measurable in quick mode"
RULE = (
    "The verdict follows from the parts of the claim: held if all held; held once corrected if all held, "
    "some of them with a slip of the slide corrected; did not hold if no part held; not measurable here if "
    "nothing could be measured, or if quick mode left a part open; partly otherwise."
)


class Verdict(StrEnum):
    """What became of a claim."""

    HELD = "held"
    PARTLY = "partly"
    CORRECTED = "held once corrected"
    FAILED = "did not hold"
    OPEN = "not measurable here"


@dataclass(frozen=True)
class Finding:
    """A part of a claim, its verdict and the numbers behind it."""

    claim: str
    verdict: Verdict
    measured: str
    exact: bool = False  # the same whatever the number of steps and seeds

    def __str__(self) -> str:
        return f"{self.verdict}: {self.claim}\n    {self.measured}"


class Judge:
    """Collects the findings of one experiment."""

    def __init__(self, quick: bool = False) -> None:
        self.quick = quick
        self.findings: tuple[Finding, ...] = ()

    def exact(self, claim: str, verdict: Verdict | bool, measured: str) -> None:
        """Add what more steps, seeds or text cannot change."""
        self.findings += (Finding(claim, _verdict(verdict), measured, exact=True),)

    def measure(self, claim: str, verdict: Verdict | bool, measured: str) -> None:
        """Add what was measured; a quick run leaves it open, whatever its few steps show."""
        found = Finding(claim, Verdict.OPEN, QUICK) if self.quick else Finding(
            claim, _verdict(verdict), measured
        )  # fmt: skip
        self.findings += (found,)


def overall(findings: Sequence[Finding]) -> Verdict:
    """Return the verdict of the whole claim by `RULE`."""
    kinds = {each.verdict for each in findings}
    if kinds <= {Verdict.OPEN} or any(each.measured == QUICK for each in findings):
        return Verdict.OPEN
    if kinds == {Verdict.HELD}:
        return Verdict.HELD
    if kinds <= {Verdict.HELD, Verdict.CORRECTED}:
        return Verdict.CORRECTED
    return Verdict.FAILED if kinds <= {Verdict.FAILED, Verdict.OPEN} else Verdict.PARTLY


def by_test(difference: float, p: float | None) -> Verdict:
    """Judge by a significance test; ``difference`` is positive where the claim is right.

    Without a significant difference in either direction nothing is known: too few seeds or too little text.
    """
    if p is None or p >= LEVEL or difference == 0:
        return Verdict.OPEN
    return Verdict.HELD if difference > 0 else Verdict.FAILED


def by_all(measured: Sequence[bool]) -> Verdict:
    """Judge by several measurements of the same claim: all, some or none of them as it says."""
    if all(measured):
        return Verdict.HELD
    return Verdict.PARTLY if any(measured) else Verdict.FAILED


def _verdict(verdict: Verdict | bool) -> Verdict:
    if isinstance(verdict, Verdict):
        return verdict
    return Verdict.HELD if verdict else Verdict.FAILED
