"""The evidence for every token of a text: which members, cached tokens and neighbours gave its probability.

"External memory" [MAUSAM "What is missing in Transformers?"]: what is looked up can be shown. A text is read
as `eval` reads it; for each token, what each member of the model predicts, and what it has seen before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nextword.core.contracts import START, Block, Carrier, LanguageModel, State, Tokenizer
from nextword.mixtures.evidence import advance, explain
from nextword.mixtures.evidence import read as read_tokens
from nextword.mixtures.memory import Part, Witness

SHOWN = 6  # tokens of context that are shown


@dataclass(frozen=True)
class EarlierPlace:
    """A place where the token stood before, and its share of the member's probability."""

    context: str  # the tokens before it there
    weight: float
    back: int | None = None  # in this text, this many tokens ago
    place: int | None = None  # or at this place of the stored text
    count: int | None = None  # how often the training text has the context


@dataclass(frozen=True)
class Said:
    """What one member predicts: it adds ``share`` = weight · probability to the probability of the token."""

    name: str
    weight: float
    probability: float
    share: float
    context: int | None = None  # how many of the last tokens the member has found in its text
    seen: tuple[EarlierPlace, ...] = ()


@dataclass(frozen=True)
class TokenEvidence:
    """One token, its probability, and which member gave how much of it."""

    line: int
    text: str
    probability: float
    said: tuple[Said, ...]

    def __repr__(self) -> str:
        brief = self.brief()
        return f"<TokenEvidence {self.text!r}, p={self.probability:.4g}{f': {brief}' if brief else ''}>"

    @property
    def logprob(self) -> float:
        """log p, natural."""
        return math.log(self.probability) if self.probability > 0 else -math.inf

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def brief(self) -> str:
        """Summarize on one line every member's share, and the strongest places behind it."""
        return "; ".join(_brief(each) for each in self.said if each.share > 0)

    def __str__(self) -> str:
        lines = [f"{self.text}  p = {self.probability:.6f}"]
        for each in self.said:
            lines.append(f"  {each.name}: {each.weight:.3f} x {each.probability:.6f} = {each.share:.6f}")
            lines += [f"    {seen.weight:.4f}  {_place(seen)}" for seen in each.seen]
        return "\n".join(lines)


def evidence(
    model: LanguageModel, tokenizer: Tokenizer, text: str, top: int = 5, names: Sequence[str] = ()
) -> list[TokenEvidence]:
    """Return the evidence for every token of a text; ``names``: what the members of a mixture are called.

    ``top``: places that are shown for each member. Works with every model: one without members or memories
    returns only its probability.
    """
    return list(each_evidence(model, tokenizer, text, top, names))


def each_evidence(
    model: LanguageModel, tokenizer: Tokenizer, text: str, top: int = 5, names: Sequence[str] = ()
) -> Iterator[TokenEvidence]:
    """Yield `evidence` token by token."""
    block = Block(text.encode("utf-8", "surrogatepass"), True, "the text")
    state: State = None
    read: list[int] = []  # START left out
    line = 0
    for piece in tokenizer.encode_blocks([block]):
        begins = None if piece.documents is None else set(piece.documents)
        for at, word in enumerate(np.asarray(piece.ids).tolist()):
            if word == START:
                line += 1
                resumes = begins is not None and at not in begins and state is not None
                state = model.carry(state) if resumes and isinstance(model, Carrier) else model.start(1)
                continue
            parts = _named(explain(model, state, word, top), names)
            yield _token(line, word, parts, read, tokenizer)
            state = advance(model, word, state)
            read.append(word)


def evidence_after(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    ids: Sequence[int],
    top: int = 5,
    names: Sequence[str] = (),
) -> list[TokenEvidence]:
    """Return the evidence for tokens that may come after a prompt, given as ids without START."""
    state, read, found = model.start(1), list(prompt), []
    if read:
        state = read_tokens(model, np.array([read]), np.array([len(read)]), state)
    for word in ids:
        parts = _named(explain(model, state, word, top), names)
        found.append(_token(1, word, parts, read, tokenizer))
        state = advance(model, word, state)
        read.append(word)
    return found


def _token(
    line: int, word: int, parts: list[tuple[str, Part]], read: list[int], tokenizer: Tokenizer
) -> TokenEvidence:
    said = tuple(_said(part, read, tokenizer) for part in parts)
    return TokenEvidence(line, tokenizer.piece(word), math.fsum(each.share for each in said), said)


def _named(parts: Sequence[Part], names: Sequence[str]) -> list[tuple[str, Part]]:
    known = names if len(names) == len(parts) else [part.name for part in parts]
    return list(zip(known, parts, strict=True))


def _said(named: tuple[str, Part], read: list[int], tokenizer: Tokenizer) -> Said:
    name, part = named
    seen = tuple(_seen(witness, part, read, tokenizer) for witness in part.witnesses)
    return Said(name, part.weight, part.probability, part.share, part.context, seen)


def _seen(witness: Witness, part: Part, read: list[int], tokenizer: Tokenizer) -> EarlierPlace:
    """Add to a witness the tokens before it: of this text, the stored one, or those that matched."""
    words: Sequence[int] = witness.context
    if witness.back is not None:
        at = len(read) - witness.back
        words = read[max(0, at - SHOWN) : max(0, at)]
    elif part.context:
        words = read[-min(part.context, SHOWN) :]
    context = " ".join(tokenizer.piece(word) for word in words[-SHOWN:])
    return EarlierPlace(context, witness.weight, witness.back, witness.place, witness.count)


def _place(seen: EarlierPlace) -> str:
    """Describe a place in words."""
    if seen.back is not None:
        return f"'{seen.context}' {seen.back:,} tokens ago"
    if seen.place is not None:
        return f"'{seen.context}' at token {seen.place:,} of the stored text"
    return f"'{seen.context}', which the training text has {seen.count or 0:,} times"


def _brief(said: Said) -> str:
    places = ", ".join(f"{seen.weight:.3f} {_place(seen)}" for seen in said.seen[:2])
    return f"{said.name} {said.share:.4f}" + (f" ({places})" if places else "")
