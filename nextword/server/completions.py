"""``/v1/completions``: continue prompts, and score them; `echo` with `logprobs` works for every family."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import APIRouter, Response
from fastapi import Request as HttpRequest

from nextword.decode.requests import Request, Row
from nextword.server.answers import answer, begun, beside, body_size, events, while_connected
from nextword.server.body import StrictRoute
from nextword.server.errors import ApiError, streamed
from nextword.server.models import Model, Shelf
from nextword.server.prompts import Prompt, prompts_of
from nextword.server.requests import ERRORS, answering, requests_for, stops_in
from nextword.server.schemas import Completion, CompletionRequest
from nextword.server.texts import REASONS, Marked, Writer, arrived_rows, mark_prompt

router = APIRouter(route_class=StrictRoute, tags=["text"])


@router.post("/v1/completions", response_model=Completion, responses=streamed(*ERRORS))
async def complete(http: HttpRequest, asked: CompletionRequest) -> Response:
    """Continue prompts, or score them: `echo` and `logprobs` with `max_tokens` 0."""
    shelf: Shelf = http.app.state.shelf
    model = await shelf.find(asked.model)
    model.check_text()
    made = await beside(body_size(http), lambda: _Completion(asked, model))
    with answering():
        if asked.stream:
            return events(await begun(made.stream()))
        await while_connected(http, model.worker.run(made.requests))
    return await beside(made.size, lambda: answer(made.whole()))


class _Completion:
    """One request on its way to an answer."""

    def __init__(self, asked: CompletionRequest, model: Model) -> None:
        self.asked, self.model = asked, model
        self.n, self.stop = asked.n, stops_in(asked.stop)
        self.top = asked.logprobs or 0
        self.best_of = asked.best_of or asked.n
        tokens = 16 if asked.max_tokens is None else asked.max_tokens
        if self.best_of < self.n:
            raise ApiError(
                422,
                f"'best_of' is {self.best_of}, less than 'n', which is {self.n}",
                "contradiction",
                "best_of",
            )
        if asked.stream and self.best_of > self.n:
            raise ApiError(
                422,
                "the best of several texts is not known before they end; leave out 'stream' or 'best_of'",
                "contradiction",
                "best_of",
            )
        if not tokens:
            self.n = self.best_of = 1
        self.prompts = prompts_of(asked.prompt, model.tokenizer)
        scored = bool(asked.echo) and asked.logprobs is not None
        self.requests = requests_for(
            asked, model, self.prompts, tokens, self.best_of, self.top, scored, self.stop
        )
        self.head = {
            "id": f"cmpl-{random.getrandbits(96):024x}", "object": "text_completion",
            "created": int(time.time()), "model": model.name,
        }  # fmt: skip

    @property
    def size(self) -> int:
        """Return how many numbers the answer has."""
        return (1 + self.top) * self._usage()["total_tokens"]

    def whole(self) -> dict[str, Any]:
        """Return the answer when everything is done."""
        choices: list[dict[str, Any]] = []
        for prompt, request in zip(self.prompts, self.requests, strict=True):
            for row in self._chosen(request):
                choices.append(self._choice(len(choices), prompt, request, row))
        return {**self.head, "choices": choices, "usage": self._usage()}

    def _chosen(self, request: Request) -> Sequence[Row | None]:
        """Return the texts to show: of `best_of` those with the highest log p a token."""
        if not request.rows:
            return [None]
        if self.best_of == self.n:
            return request.rows
        return sorted(request.rows, key=_per_token, reverse=True)[: self.n]

    def _choice(self, index: int, prompt: Prompt, request: Request, row: Row | None) -> dict[str, Any]:
        marked = self._echoed(prompt, request) if self.asked.logprobs is not None else None
        text = prompt.text if self.asked.echo else ""
        reason = "length"
        if row is not None:
            writer = Writer(self.model.tokenizer, prompt.ids, self.stop, len(text))
            text += writer.push(row.tokens, row.reason, marked)
            reason = REASONS[row.reason]
        found = None if marked is None else marked.to_json(self.top)
        return {"index": index, "text": text, "logprobs": found, "finish_reason": reason}

    def _echoed(self, prompt: Prompt, request: Request) -> Marked:
        if not self.asked.echo:
            return Marked()
        return mark_prompt(request.read, self.model.tokenizer, prompt.has_start)

    def _usage(self) -> dict[str, int]:
        read = sum(prompt.count for prompt in self.prompts)
        made = sum(len(row.tokens) for request in self.requests for row in request.rows)
        return {"prompt_tokens": read, "completion_tokens": made, "total_tokens": read + made}

    async def stream(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the answer piece by piece."""
        with_usage = self.asked.stream_options is not None and self.asked.stream_options.include_usage
        extra = {"usage": None} if with_usage else {}
        first = {request: i * self.n for i, request in enumerate(self.requests)}
        prompts = dict(zip(self.requests, self.prompts, strict=True))
        writers: dict[Row, Writer] = {}
        echoed: set[int] = set()
        async for pieces in self.model.worker.stream(self.requests):
            choices: list[dict[str, Any]] = []
            for row, tokens, is_last in arrived_rows(pieces):
                index, prompt = first[row.request] + row.sample, prompts[row.request]
                marked = Marked() if self.asked.logprobs is not None else None
                before = ""
                if self.asked.echo and index not in echoed:
                    echoed.add(index)
                    before = prompt.text
                    marked = marked and self._echoed(prompt, row.request)
                if row not in writers:
                    writers[row] = Writer(self.model.tokenizer, prompt.ids, self.stop, len(before))
                text = before + writers[row].push(tokens, row.reason if is_last else "", marked)
                if not text and not is_last and marked is None:
                    continue
                found = None if marked is None else marked.to_json(self.top)
                reason = REASONS[row.reason] if is_last else None
                choices.append({"index": index, "text": text, "logprobs": found, "finish_reason": reason})
            if choices:
                yield {**self.head, "choices": choices, **extra}
        for request in self.requests:
            if not request.rows:  # nothing was to be generated
                yield {
                    **self.head,
                    "choices": [self._choice(first[request], prompts[request], request, None)],
                    **extra,
                }
        if with_usage:
            yield {**self.head, "choices": [], "usage": self._usage()}


def _per_token(row: Row) -> float:
    return sum(token.logprob for token in row.tokens) / max(1, len(row.tokens))
