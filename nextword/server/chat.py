"""``/v1/chat/completions``: the turns of a conversation as one prompt.

A language model continues text, so turns are written one after another as ``role: content`` lines, and the
answer is what comes behind ``assistant:`` until the next turn would begin. The template is this file: no
template language runs, and nothing in a message can become more than text.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import APIRouter, Response
from fastapi import Request as HttpRequest

from nextword.core.contracts import Tokenizer
from nextword.decode.requests import Row, Scored
from nextword.server.answers import answer, begun, beside, body_size, events, while_connected
from nextword.server.body import StrictRoute
from nextword.server.errors import streamed
from nextword.server.models import Model, Shelf
from nextword.server.prompts import from_text
from nextword.server.requests import ERRORS, answering, requests_for, stops_in
from nextword.server.schemas import ChatAnswer, ChatMessage, ChatRequest
from nextword.server.texts import REASONS, Writer, arrived_rows, finite

router = APIRouter(route_class=StrictRoute, tags=["text"])
ASSISTANT = "assistant"
TURNS = tuple(f"\n{role}:" for role in ("user", "system", ASSISTANT))  # where an answer ends
DEFAULT_TOKENS = 256


@router.post("/v1/chat/completions", response_model=ChatAnswer, responses=streamed(*ERRORS))
async def chat(http: HttpRequest, asked: ChatRequest) -> Response:
    """Answer a conversation."""
    shelf: Shelf = http.app.state.shelf
    model = await shelf.find(asked.model)
    model.check_text()
    made = await beside(body_size(http), lambda: _Chat(asked, model))
    with answering():
        if asked.stream:
            return events(await begun(made.stream()))
        await while_connected(http, model.worker.run(made.requests))
    return answer(made.whole())


def prompt_of(messages: Sequence[ChatMessage]) -> str:
    """Write the turns one after another, and the beginning of the answer's."""
    turns = [f"{'system' if each.role == 'developer' else each.role}: {_text(each)}\n" for each in messages]
    return "".join(turns) + f"{ASSISTANT}:"


def _text(message: ChatMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "".join(part.text for part in message.content)


class _Chat:
    """One conversation on its way to an answer."""

    def __init__(self, asked: ChatRequest, model: Model) -> None:
        self.asked, self.model = asked, model
        self.stop = (*stops_in(asked.stop), *TURNS)
        self.prompt = from_text(prompt_of(asked.messages), model.tokenizer)
        tokens = asked.max_completion_tokens or asked.max_tokens or DEFAULT_TOKENS
        top = (asked.top_logprobs or 0) if asked.logprobs else 0
        self.requests = requests_for(asked, model, [self.prompt], tokens, asked.n, top, False, self.stop)
        self.head = {
            "id": f"chatcmpl-{random.getrandbits(96):024x}", "created": int(time.time()), "model": model.name,
        }  # fmt: skip

    def whole(self) -> dict[str, Any]:
        """Return the answer when everything is done."""
        choices = []
        for row in self.requests[0].rows:
            text = self._writer().push(row.tokens, row.reason, None).lstrip()
            choices.append({
                "index": row.sample, "message": {"role": ASSISTANT, "content": text},
                "logprobs": self._logprobs(row.tokens), "finish_reason": REASONS[row.reason],
            })  # fmt: skip
        return {**self.head, "object": "chat.completion", "choices": choices, "usage": self._usage()}

    def _writer(self) -> Writer:
        return Writer(self.model.tokenizer, self.prompt.ids, self.stop, 0)

    def _logprobs(self, tokens: Sequence[Scored]) -> dict[str, Any] | None:
        if not self.asked.logprobs:
            return None
        return {"content": [logprob_of(token, self.model.tokenizer) for token in tokens], "refusal": None}

    def _usage(self) -> dict[str, int]:
        made = sum(len(row.tokens) for row in self.requests[0].rows)
        read = self.prompt.count
        return {"prompt_tokens": read, "completion_tokens": made, "total_tokens": read + made}

    async def stream(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the answer piece by piece; the first piece of each text names the role."""
        head = {**self.head, "object": "chat.completion.chunk"}
        with_usage = self.asked.stream_options is not None and self.asked.stream_options.include_usage
        extra = {"usage": None} if with_usage else {}
        writers: dict[Row, Writer] = {}
        shown: set[Row] = set()
        async for pieces in self.model.worker.stream(self.requests):
            choices: list[dict[str, Any]] = []
            for row, tokens, is_last in arrived_rows(pieces):
                delta: dict[str, Any] = {}
                if row not in writers:
                    writers[row], delta["role"] = self._writer(), ASSISTANT
                text = writers[row].push(tokens, row.reason if is_last else "", None)
                text = text if row in shown else text.lstrip()
                if text:
                    shown.add(row)
                if text or "role" in delta:
                    delta["content"] = text
                if delta or is_last or self.asked.logprobs:
                    choices.append({
                        "index": row.sample, "delta": delta, "logprobs": self._logprobs(tokens),
                        "finish_reason": REASONS[row.reason] if is_last else None,
                    })  # fmt: skip
            if choices:
                yield {**head, "choices": choices, **extra}
        if with_usage:
            yield {**head, "choices": [], "usage": self._usage()}


def logprob_of(token: Scored, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return a token with its log-probability and alternatives, in the form of chat."""
    top = [_named(index, logp, tokenizer) for index, logp in token.top]
    return {**_named(token.id, token.logprob, tokenizer), "top_logprobs": top}


def _named(index: int, logp: float, tokenizer: Tokenizer) -> dict[str, Any]:
    text = tokenizer.piece(index)
    return {"token": text, "logprob": finite(logp), "bytes": list(text.encode("utf-8", "replace"))}
