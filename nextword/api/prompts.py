"""What a user should know about a prompt: the words that the model does not know, or that there is none."""

from __future__ import annotations

from nextword.api.opened import Opened
from nextword.text.unknown import unknown_note

_FEW = 50  # texts whose beginnings teach a model little of how texts begin


def notes_on(run: Opened, prompt: str, where: str = "the prompt") -> list[str]:
    """Return one sentence for each thing that makes the answer to a prompt worse than it could be."""
    notes = (unknown_note(run.tokenizer, prompt, where), "" if prompt else no_beginnings_note(run))
    return [note for note in notes if note]


def no_beginnings_note(run: Opened) -> str:
    """Say that a model has seen few texts begin: one long file is one text, with one beginning."""
    count = run.facts.data.sequences
    if run.tokenizer.unit != "document" or not 0 < count < _FEW:
        return ""
    read = "one text" if count == 1 else f"{count} texts"
    return f"trained on {read}, so it hardly knows how a text begins; give it the first words"
