"""From a request to the engine's: checked against the model, within the limits, with a seed."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nextword.core.errors import ContextError, NextwordError
from nextword.decode.engine import Full
from nextword.decode.requests import Request
from nextword.decode.settings import DecodeSettings
from nextword.server.errors import INTERNAL, ApiError
from nextword.server.models import Model
from nextword.server.prompts import Prompt
from nextword.server.schemas import MOST_SCORES, MOST_TEXTS, MOST_TOKENS, Sampling
from nextword.server.worker import Failed

ERRORS = (400, 401, 403, 404, 408, 413, 415, 422, 429, 503)  # that every route of a model may answer


def requests_for(
    asked: Sampling,
    model: Model,
    prompts: Sequence[Prompt],
    tokens: int,
    texts: int,
    top: int,
    scored: bool,
    stop: tuple[str, ...],
) -> list[Request]:
    """Return one request of the engine for each prompt; raise where they are too much together."""
    total = texts * len(prompts)
    most = min(MOST_TEXTS, model.worker.most)
    if texts > model.worker.rows or total > most:
        said = f"{total} texts are asked for; possible are {most}, and {model.worker.rows} of one prompt"
        raise ApiError(422, said, "too_many", "n")
    if total * tokens > MOST_TOKENS:
        said = f"{total} texts of {tokens:,} tokens are asked for; possible are {MOST_TOKENS:,} tokens in all"
        raise ApiError(422, said, "too_many", "max_tokens")
    scores = (total * tokens + (sum(len(prompt.ids) for prompt in prompts) if scored else 0)) * (1 + top)
    if scores > MOST_SCORES:
        said = f"{scores:,} log-probabilities are asked for; possible are {MOST_SCORES:,}"
        raise ApiError(422, said, "too_many", "logprobs")
    most_id = model.tokenizer.vocab_size - 1
    if tokens and any(int(each) > most_id for each in asked.logit_bias or ()):
        said = f"an id is not in the vocabulary of {most_id + 1:,} tokens"
        raise ApiError(422, said, "invalid_token", "logit_bias")
    settings = settings_for(asked, tokens, stop) if tokens else None
    return [Request(prompt.ids, settings, texts, scored, top) for prompt in prompts]


def settings_for(asked: Sampling, tokens: int, stop: tuple[str, ...]) -> DecodeSettings:
    """Return the settings of decoding; a seed is drawn where none is given."""
    seed = secrets.randbits(62) if asked.seed is None else asked.seed & (2**63 - 1)
    return DecodeSettings(
        decode="sample" if asked.temperature else "greedy",
        max_tokens=tokens, temperature=float(asked.temperature), top_p=float(asked.top_p),
        top_k=min(max(0, asked.top_k), 10**8), min_p=float(asked.min_p), seed=seed, stop=stop,
        repetition_penalty=float(asked.repetition_penalty),
        presence_penalty=float(asked.presence_penalty), frequency_penalty=float(asked.frequency_penalty),
        logit_bias={int(index): float(value) for index, value in (asked.logit_bias or {}).items()},
    )  # fmt: skip


def stops_in(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the stop texts of a request."""
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


@contextmanager
def answering() -> Iterator[None]:
    """Turn what the engine raises into answers."""
    try:
        yield
    except Full as error:
        raise ApiError(
            429,
            "too many requests wait for this model; try again",
            "overloaded",
            headers={"Retry-After": "1"},
        ) from error
    except ContextError as error:
        raise ApiError(
            400,
            "the model has no distribution after this text (a count model without smoothing)",
            "no_distribution",
            "prompt",
        ) from error
    except (Failed, NextwordError) as error:
        raise ApiError(500, INTERNAL, "internal_error") from error
