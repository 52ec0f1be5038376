"""Names that do not exist: the nearest one, and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_SHOWN = 12  # names of a long list in an error
_BEGINNING = 4  # letters that are taken for the beginning of a longer name


def unknown(kind: str, name: str, allowed: Iterable[str], where: str = "", more: str = "") -> str:
    """Return the message for a name that does not exist: the nearest one, and what is allowed.

    ``where`` follows the name: ``unknown gate 'x' in '--set-gate'; allowed: …``. ``more``: the command that
    lists everything, where a long list is cut.
    """
    return f"unknown {kind} '{name}'{where and ' '}{where}; {suggestion(name, allowed, more)}"


def suggestion(name: str, allowed: Iterable[str], more: str = "") -> str:
    """Return the nearest of the allowed names, and all of them, or the first ones of many."""
    allowed = list(allowed)
    guess = nearest(name, allowed)
    if not allowed:
        return "there are none to choose from"
    hint = f"did you mean '{guess}'? Allowed" if guess else "allowed"
    return f"{hint}: {listed(allowed, more)}"


def listed(names: Sequence[str], more: str = "") -> str:
    """Return names as one list; of many only the first, with how many there are and the command for all."""
    if len(names) <= _SHOWN + 2:
        return ", ".join(names)
    rest = f"and {len(names) - _SHOWN} more"
    return f"{', '.join(names[:_SHOWN])} {rest}{more and f' ({more} shows all)'}"


def nearest(name: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed name that begins like this one, else the most similar; None if none is similar."""
    folded = {choice.lower(): choice for choice in allowed}
    name = name.lower()
    longer = [choice for choice in folded if choice.startswith(name)] if len(name) >= _BEGINNING else []
    found = sorted(longer, key=len) or difflib.get_close_matches(name, folded, n=1, cutoff=0.5)
    return folded[found[0]] if found else None


def same_but_case(name: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed name that differs in case only, if there is just one."""
    found = [each for each in allowed if each.lower() == name.lower()]
    return found[0] if len(found) == 1 else None
