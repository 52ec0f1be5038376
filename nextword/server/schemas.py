"""What requests and answers look like: every parameter has limits, and an unknown one is an error.

Names and defaults are those of OpenAI's API; `top_k`, `min_p` and `repetition_penalty` are as in other local
servers.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

MOST_TEXTS = 256  # prompts times texts of one request
MOST_TOKENS = 1 << 18  # tokens that one request may ask for: texts times max_tokens
MOST_PROMPT = 1 << 17  # tokens of all prompts of one request
MOST_SCORES = 1 << 20  # log-probabilities that one answer may hold
_ID = 2**31 - 1


def _is_unicode(text: str) -> str:
    """Refuse a lone surrogate, which JSON can write and UTF-8 cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError("the text holds a lone surrogate, which is not a character") from error
    return text


Text = Annotated[StrictStr, AfterValidator(_is_unicode), Field(max_length=1 << 20)]
TokenId = Annotated[StrictInt, Field(ge=0, le=_ID)]
Number = StrictFloat  # also a whole number
Short = Annotated[Text, Field(min_length=1, max_length=200)]
ModelName = Annotated[
    StrictStr,
    AfterValidator(_is_unicode),
    Field(min_length=1, max_length=200, description="the id of a model, as /v1/models lists it"),
]
Temperature = Annotated[Number, Field(ge=0, le=2, description="0: the most likely token, always")]
Share = Annotated[Number, Field(ge=0, le=1)]
Penalty = Annotated[Number, Field(ge=-2, le=2)]

Bias = Annotated[
    dict[Annotated[StrictStr, Field(pattern=r"^[0-9]{1,10}$")], Annotated[Number, Field(ge=-100, le=100)]],
    Field(max_length=1024, json_schema_extra={"additionalProperties": False}),
]


def _with_nulls(schema: dict[str, Any]) -> None:
    """Say in a schema that every parameter that may be left out may be null as well."""
    for name, about in schema.get("properties", {}).items():
        if name in schema.get("required", ()) or {"type": "null"} in [about, *about.get("anyOf", ())]:
            continue
        words = {key: about.pop(key) for key in ("default", "description", "title") if key in about}
        kinds = about["anyOf"] if about.keys() == {"anyOf"} else [dict(about)]
        about.clear()
        about.update({"anyOf": [*kinds, {"type": "null"}], **words})


class Given(BaseModel):
    """The root of requests. As in OpenAI's API, null means the same as leaving a parameter out."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_with_nulls)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        if not isinstance(given, dict) or None not in given.values():
            return given
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: value for name, value in given.items() if value is not None or name not in optional}


@cache
def parameters() -> frozenset[str]:
    """Return the names of all parameters of all requests."""
    kinds, names = [Given], set[str]()
    for kind in kinds:
        kinds += kind.__subclasses__()
        names |= kind.model_fields.keys()
    return frozenset(names)


class StreamOptions(Given):
    """What a stream tells beside its tokens."""

    include_usage: StrictBool = Field(False, description="whether the last event has the number of tokens")


class Sampling(Given):
    """How tokens are chosen; completions and chat have it in common."""

    model: ModelName
    n: StrictInt = Field(1, ge=1, le=64, description="texts for each prompt")
    temperature: Temperature = 1.0
    top_p: Annotated[Number, Field(gt=0, le=1)] = Field(
        1.0, description="only the most likely tokens, up to this total p"
    )
    top_k: StrictInt = Field(0, ge=-1, le=_ID, description="only the k most likely tokens; 0 or -1: all")
    min_p: Share = Field(0.0, description="only tokens with this share of the best token's p")
    presence_penalty: Penalty = Field(0.0, description="taken from log p of every token already generated")
    frequency_penalty: Penalty = Field(0.0, description="taken as often as a token was generated")
    repetition_penalty: Annotated[Number, Field(ge=1, le=10)] = Field(
        1.0, description="multiplies log p of tokens used before"
    )
    logit_bias: Bias | None = Field(None, description="added to log p of tokens, by their ids")
    stop: Short | Annotated[list[Short], Field(max_length=16)] | None = Field(
        None, description="texts that end the answer; they are not part of it"
    )
    seed: Annotated[StrictInt, Field(ge=1 - 2**53, le=2**53 - 1)] | None = Field(
        None, description="the same seed gives the same text"
    )
    stream: StrictBool | None = Field(False, description="send tokens as they come")
    stream_options: StreamOptions | None = None
    user: Annotated[Text, Field(max_length=256)] | None = Field(None, description="not used")


class CompletionRequest(Sampling):
    """Continue prompts, or score them (``echo`` with ``max_tokens`` 0)."""

    prompt: (
        Text
        | Annotated[list[TokenId], Field(min_length=1, max_length=MOST_PROMPT)]
        | Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)]
        | Annotated[
            list[Annotated[list[TokenId], Field(max_length=MOST_PROMPT)]],
            Field(min_length=1, max_length=MOST_TEXTS),
        ]
    ) = Field("", description="one or several texts, or token ids; an id 1 (START) may stand first")
    max_tokens: Annotated[StrictInt, Field(ge=0, le=16_384)] | None = Field(
        16, description="the most tokens to generate"
    )
    best_of: Annotated[StrictInt, Field(ge=1, le=64)] | None = Field(
        None, description="generate this many texts and return the n likeliest"
    )
    logprobs: Annotated[StrictInt, Field(ge=0, le=100)] | None = Field(
        None, description="log p of every token, with this many alternatives"
    )
    echo: StrictBool | None = Field(
        False, description="the answer begins with the prompt, scored if logprobs is given"
    )
    suffix: None = Field(None, description="not possible")


class TextPart(Given):
    """A part of a message."""

    type: Literal["text"]
    text: Text


class ChatMessage(Given):
    """One turn of a conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Text | Annotated[list[TextPart], Field(max_length=64)]
    name: Annotated[Text, Field(max_length=64)] | None = None


class ChatRequest(Sampling):
    """Answer a conversation, whose turns are written one after another as the prompt."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=256)
    max_tokens: Annotated[StrictInt, Field(ge=1, le=16_384)] | None = Field(
        None, description="the most tokens of the answer"
    )
    max_completion_tokens: Annotated[StrictInt, Field(ge=1, le=16_384)] | None = Field(
        None, description="the same, by its newer name"
    )
    logprobs: StrictBool | None = Field(False, description="whether log p of every token is returned")
    top_logprobs: Annotated[StrictInt, Field(ge=0, le=100)] | None = Field(
        None, description="alternatives of every token"
    )


class EmbeddingRequest(Given):
    """Turn texts into vectors."""

    model: ModelName
    input: (
        Text
        | Annotated[list[TokenId], Field(min_length=1, max_length=MOST_PROMPT)]
        | Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)]
        | Annotated[
            list[Annotated[list[TokenId], Field(min_length=1, max_length=MOST_PROMPT)]],
            Field(min_length=1, max_length=MOST_TEXTS),
        ]
    ) = Field(description="one or several texts, or token ids")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: None = Field(None, description="not possible")
    user: Annotated[Text, Field(max_length=256)] | None = Field(None, description="not used")


class PredictRequest(Given):
    """Predict labels, tags or translations of inputs, by the task of the run."""

    model: ModelName
    input: (
        Annotated[Text, Field(max_length=100_000)]
        | Annotated[
            list[Annotated[Text, Field(max_length=100_000)]], Field(min_length=1, max_length=MOST_TEXTS)
        ]
    ) = Field(description="one input or several")
    pretokenized: StrictBool = Field(False, description="words are what whitespace separates")


class TokenizeRequest(Given):
    """Turn a text into tokens."""

    model: ModelName | None = Field(None, description="not needed where one model is served")
    prompt: Text = Field(description="the text; exactly <s> or </s> means START or END")
    add_special_tokens: StrictBool = Field(False, description="whether START is put before the text")
    return_token_strs: StrictBool = Field(False, description="whether the tokens' texts are returned too")


class DetokenizeRequest(Given):
    """Turn tokens into text."""

    model: ModelName | None = Field(None, description="not needed where one model is served")
    tokens: list[TokenId] = Field(max_length=MOST_PROMPT)


# -- answers ---------------------------------------------------------------------------------------


class Usage(BaseModel):
    """How many tokens were read and generated."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Logprobs(BaseModel):
    """The tokens of an answer with their log-probabilities; that of START, which is given, is null."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int]


class CompletionChoice(BaseModel):
    """One text."""

    index: int
    text: str
    logprobs: Logprobs | None
    finish_reason: Literal["stop", "length"] | None


class Completion(BaseModel):
    """The answer of /v1/completions; a stream sends it piece by piece."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | None = None
    system_fingerprint: str | None = None


class ChatAnswer(BaseModel):
    """The answer of /v1/chat/completions; a stream sends `delta` instead of `message`."""

    id: str
    object: Literal["chat.completion", "chat.completion.chunk"]
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: Usage | None = None
    system_fingerprint: str | None = None


class ServedModel(BaseModel):
    """A served run."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    task: str = Field(description="lm, tag, classify or translate")
    family: str
    about: str = Field(description="the model in a phrase")


class ServedModels(BaseModel):
    """All served runs."""

    object: Literal["list"]
    data: list[ServedModel]
    training: list[str] = Field(description="ids that will be served when their training is done")


class Embedding(BaseModel):
    """The vector of one input."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Embeddings(BaseModel):
    """The answer of /v1/embeddings."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: dict[str, int]


class Predictions(BaseModel):
    """The answer of /v1/predict: one object an input, as `nextword predict --json` prints them."""

    model: str
    task: str
    data: list[dict[str, Any]]


class Tokens(BaseModel):
    """The answer of /tokenize."""

    tokens: list[int]
    count: int
    token_strs: list[str] | None = None


class Detokenized(BaseModel):
    """The answer of /detokenize."""

    prompt: str


class TokenizerInfo(BaseModel):
    """What clients need to know of a tokenizer."""

    tokenizer_class: str
    vocab_size: int
    bos_token: str
    eos_token: str
    unk_token: str
    pad_token: str | None
    chat_template: str | None
    unit: str = Field(description="what END ends: line or document")
