"""What the page asks and what it gets: limits on every parameter, numbers that JSON has.

A probability of 0 has no logarithm: its surprise, and every sum over it, is null.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, StrictInt

from nextword.server.schemas import Given, ModelName, Text

MOST_LINES = 512  # that are scored at a time
Typed = Annotated[Text, Field(max_length=20_000, description="what stands before the next word")]
Coloured = Annotated[Text, Field(min_length=1, max_length=50_000, description="the text to be scored")]
Top = Annotated[StrictInt, Field(ge=1, le=50, description="how many are listed")]
Bits = Annotated[float | None, Field(description="-log2 p; null where p is 0")]


def _is_line(text: str) -> str:
    if "\n" in text:
        raise ValueError("a line holds a newline; split the text first")
    return text


class NextQuestion(Given):
    """What comes next?"""

    model: ModelName
    text: Typed = ""
    top: Top = 8


class WhyQuestion(Given):
    """Why this word?"""

    model: ModelName
    text: Typed = ""
    word: Annotated[Text, Field(min_length=1, max_length=500)]


class SurpriseQuestion(Given):
    """How surprising is each token?"""

    model: ModelName
    text: Coloured


class PlaceQuestion(Given):
    """What else could stand there?"""

    model: ModelName
    text: Coloured
    number: StrictInt = Field(ge=0, le=1 << 20, description="of the prediction, from 0")
    top: Top = 8


class LinesQuestion(Given):
    """How likely is each of these lines?"""

    model: ModelName
    lines: list[
        Annotated[
            Text,
            AfterValidator(_is_line),
            Field(max_length=100_000, json_schema_extra={"pattern": r"^[^\n]*$"}),
        ]
    ] = Field(min_length=1, max_length=MOST_LINES)


class NextAnswerRow(BaseModel):
    """One word that may come next."""

    text: str
    probability: float


class NextAnswer(BaseModel):
    """The next words of one model; all probabilities sum to 1."""

    model: str
    asks: str = Field(description="word; completion where a word is being typed; token without spaces")
    words: list[NextAnswerRow]
    unknown: float = Field(description="of any word outside the vocabulary")
    others: float = Field(description="of all words that are not listed")
    part: str = Field(description="the beginning of a word that is completed")
    unit: str = Field(description="what ends with </s>: line or document")
    notes: list[str]


class WhyAnswer(BaseModel):
    """Where a probability comes from; what a family has nothing to say about is empty."""

    word: str
    probability: float
    model: str
    tokens: list[dict[str, Any]]
    looked_at: dict[str, Any] | None
    left_out: list[list[str | float]]
    is_adjusted: bool


class TokenAnswer(BaseModel):
    """A token as it stands in the text, with the whitespace before it."""

    text: str
    bits: Bits
    number: int
    known: bool = True
    parts: int = 1


class SurpriseAnswer(BaseModel):
    """A text token by token and word by word, and what it costs altogether."""

    model: str
    tokens: list[TokenAnswer]
    words: list[TokenAnswer]
    predictions: int
    unknown: int
    perplexity: float | None
    bits_per_byte: float | None


class PlaceAnswer(BaseModel):
    """What a model expected at one place."""

    likely: list[list[str | float]]
    text: str
    probability: float
    rank: int


class LineAnswer(BaseModel):
    """One line."""

    bits: Bits
    tokens: int
    unknown: int
    bits_per_byte: float | None


class LinesAnswer(BaseModel):
    """All lines that were asked for, in their order."""

    model: str
    lines: list[LineAnswer]


class RunsAnswer(BaseModel):
    """All runs beside those that are served."""

    folders: list[str] = Field(description="the names of the folders that are watched")
    runs: list[dict[str, Any]]
