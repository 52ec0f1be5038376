"""Advice as Python spells it: sentences name options as the command line does, and are respelled for Python.

An error or a note is written once, with ``--overwrite`` or ``--set train.memory=400M``. Where it leaves
through the Python interface it says ``overwrite=True`` or ``set={"train.memory": "400M"}``; options and
commands of other programs stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FLAGS = frozenset(
    {"resume", "overwrite", "quick", "evidence", "log10"}
)  # on the command line without a value
_NAMED = frozenset({"decode", "device", "dynamic", "model", "source", "task", "tokenizer"})  # a word follows
_RENAMED = {"from": "source"}  # a word that Python keeps for itself
_FUNCTIONS = {"estimate": "nextword.estimate"}  # an option there, a function here
_FOREIGN = frozenset({"max-restarts", "upgrade"})  # of torchrun and pip
_VERBS = {
    "eval": "evaluate",
    "import": "import_",
    "tokenizer train": "train_tokenizer",
    "data check": "check_data",
}
# Words that follow an option in a sentence and are not its value.
_WORDS = frozenset(
    (
        "and", "are", "cannot", "does", "has", "in", "is", "must", "needs", "not", "off", "or", "out", "sets",
        "to", "with", "works",
    )
)  # fmt: skip

_PLACEHOLDER = re.compile("[A-Z][A-Z0-9]*")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")
_VALUE = r"""(?:"[^"]*"|'[^']*'|[^\s'"();:,]+(?:,[^\s'"();:,]+)*)"""
_COMMAND = re.compile(
    rf"\bnextword (tokenizer train|data check|[a-z]+)((?: (?:--[a-z][a-z0-9-]*|{_VALUE}))*)"
)
_SET = re.compile(r"--set ([a-z_]+\.[a-z_]+)=([^\s'\"();,]*[^\s'\"();,.])")
_OPTION = re.compile(rf"(?<![\w-])('?)--([a-z][a-z0-9-]*)(?![\w=-])(?: ({_VALUE}))?")
_KNOWN = frozenset(
    (
        "compare", "compress", "data check", "decompress", "doctor", "eval", "export", "filter", "generate",
        "import", "inspect", "lab", "mix", "next", "predict", "rescore", "score", "tokenizer train", "train",
    )
)  # fmt: skip


def for_python(sentence: str, renamed: Mapping[str, str] | None = None) -> str:
    """Respell the options and commands of nextword in a sentence as Python arguments and calls.

    ``renamed``: arguments that have another name in the function that was called, as ``path`` for ``--out``.
    """
    if "--" in sentence or "nextword " in sentence:
        sentence = _COMMAND.sub(_call, sentence)
        sentence = _SET.sub(lambda found: f'set={{"{found[1]}": {_literal(found[2])}}}', sentence)
        sentence = _OPTION.sub(lambda found: _argument(found, renamed or {}), sentence)
        sentence = re.sub(r"\bsame command\b", "same call", sentence)
    return sentence


def _call(found: re.Match[str]) -> str:
    """Turn ``nextword train DATA --out x`` into ``nextword.train(DATA, out="x")``."""
    verb, rest = found[1], found[2]
    if verb not in _KNOWN:
        return found[0]
    name = f"nextword.{_VERBS.get(verb, verb)}"
    words, arguments, taken = re.findall(rf"--[a-z][a-z0-9-]*|{_VALUE}", rest), [], 0
    while taken < len(words):
        word = words[taken]
        if word.startswith("--") and _python_name(word[2:]) in _FLAGS:
            arguments.append(f"{_python_name(word[2:])}=True")
        elif word.startswith("--") and taken + 1 < len(words):
            taken += 1
            option = "name" if verb == "tokenizer train" and word == "--tokenizer" else _python_name(word[2:])
            arguments.append(f"{option}={_literal(words[taken])}")
        elif _PLACEHOLDER.fullmatch(word) or "/" in word or "." in word or _option_follows(words, taken):
            arguments.append(_literal(word))
        else:
            break
        taken += 1
    left = _COMMAND.sub(_call, "".join(f" {word}" for word in words[taken:]))
    return f"{name}({', '.join(arguments)}){left}" if arguments else f"{name}{left}"


def _option_follows(words: list[str], at: int) -> bool:
    return at + 1 < len(words) and words[at + 1].startswith("--")


def _argument(found: re.Match[str], renamed: Mapping[str, str]) -> str:
    """Turn ``--overwrite`` into ``overwrite=True``, ``--model lstm`` into ``model="lstm"``, and so on."""
    quote, option, value = found[1], found[2], found[3]
    if option in _FOREIGN:
        return found[0]
    name = _python_name(option)
    name = renamed.get(name, name)
    rest = "" if value is None else f" {value}"
    if name in _FUNCTIONS:
        return f"{quote}{_FUNCTIONS[name]}{rest}"
    if name in _FLAGS:
        return f"{quote}{name}=True{rest}"
    if value is not None and _is_value(name, value.rstrip(".")):
        end = value[len(value.rstrip(".")) :]
        return f"{quote}{name}={_literal(value.rstrip('.'))}{end}"
    shown = f"'{name}'" if not quote else f"'{name}"
    return f"{shown}{rest}"


def _is_value(name: str, word: str) -> bool:
    if word in _WORDS or word.startswith("--"):
        return False
    return name in _NAMED or bool(_PLACEHOLDER.fullmatch(word)) or not word.isalpha()


def _literal(word: str) -> str:
    """Write a value as Python does: numbers and placeholders as they are, other words in quotes."""
    if word[:1] in "\"'" or _PLACEHOLDER.fullmatch(word) or _NUMBER.fullmatch(word):
        return word
    if word in ("true", "false"):
        return word.title()
    return f'"{word}"'


def _python_name(option: str) -> str:
    return _RENAMED.get(option, option.replace("-", "_"))
