"""Texts into sentences, by rules: for models that have seen one sentence at a time.

A sentence ends at a mark of its script, with the quotes and brackets that close behind it. Marks that have no
other use end one everywhere: the danda of Hindi, the full stops of Chinese and Japanese, of Urdu, Armenian,
Ethiopic, Burmese and Khmer. The marks . ! ? … and the Arabic ؟ end one before whitespace, unless the next
word begins with a small letter; a full stop does not end one after an abbreviation, an initial or a number
of up to two digits ("am 3. Mai"). In doubt nothing is split: two sentences as one do less harm than a half.
Thai is written without such marks, and is not split.
"""

from __future__ import annotations

import re

_ALWAYS = "।॥。！？｡．۔։።။។"
_SPACED = ".!?…؟"
_CLOSING = "\"'”’»›)]}」』）】》〉"
_OPENING = "\"'“‘„‚«‹([{「『（【《〈¿¡-–—*•"
_BEHIND = rf"(?:\s[»›]|[{re.escape(_CLOSING)}]*)"
_END = re.compile(rf"[{_ALWAYS}][{_ALWAYS}{_SPACED}]*{_BEHIND}\s*|[{_SPACED}]+{_BEHIND}\s+")
_WORD = re.compile(rf"[^\s{re.escape(_OPENING)}]*$")
_ABBREVIATIONS = frozenset({
    "mr", "mrs", "ms", "dr", "prof", "sr", "jr", "st", "rev", "gen", "col", "capt", "lt", "sgt", "gov", "sen",
    "vs", "e.g", "i.e", "cf", "approx", "dept", "univ",
    "z.b", "d.h", "u.a", "bzw", "ca", "evtl", "ggf", "hrsg", "vgl", "dipl", "frl",
    "mme", "mlle", "p.ex", "sra", "srta", "sig", "dott", "p.es",
    "т.е", "г", "ул", "डॉ", "श्री", "प्रो",
})  # fmt: skip
_BEFORE_NUMBERS = frozenset({"no", "nos", "nr", "fig", "eq", "sec", "ch", "vol", "pp", "p", "art", "bd"})
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # J. or U.S.
_NUMBER = re.compile(r"\d{1,2}")
_UNSPACED = re.compile(r"[。！？｡．」』）】》〉\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]$")


def sentences(text: str) -> list[str]:
    """Split a text into sentences without the whitespace between them; nothing else is lost."""
    found, start = [], 0
    for end in _END.finditer(text):
        if _ends(text[start : end.start()], end[0], text[end.end() :]):
            found.append(text[start : end.end()].strip())
            start = end.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def joined(parts: list[str]) -> str:
    """Join sentences: with a space, unless the script of the one before has none."""
    text = ""
    for part in parts:
        text += part if not text or _UNSPACED.search(text) or not part else f" {part}"
    return text


def _ends(before: str, mark: str, after: str) -> bool:
    """Tell whether a mark ends a sentence, from what stands before and after it."""
    if mark[0] in _ALWAYS:
        return True
    following = after.lstrip(_OPENING + " ")
    if following[:1].islower():
        return False
    if not mark.startswith(".") or mark.startswith(".."):
        return True
    word = _WORD.search(before)
    last = word[0] if word is not None else ""
    return not (
        last.lower() in _ABBREVIATIONS
        or (last.lower() in _BEFORE_NUMBERS and following[:1].isdigit())
        or _NUMBER.fullmatch(last)
        or (_INITIALS.fullmatch(last) and last.isupper())
    )
