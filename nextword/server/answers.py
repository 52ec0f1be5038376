"""Answers as JSON and as server-sent events; a client that leaves ends what was computed for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from nextword.core.errors import NextwordError
from nextword.server.errors import INTERNAL, ApiError, error_json

T = TypeVar("T")
_LITTLE = 5_000  # characters or tokens that are handled within a few milliseconds
END_OF_STREAM = b"data: [DONE]\n\n"


def to_bytes(value: Any) -> bytes:
    """Return a value as JSON; what is not Unicode is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def answer(value: Any) -> Response:
    """Return an answer of JSON."""
    return Response(to_bytes(value), media_type="application/json")


async def beside(size: int, work: Callable[[], T]) -> T:
    """Do work of this many characters or tokens: at once if it is little, else in a thread."""
    return work() if size < _LITTLE else await asyncio.to_thread(work)


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Wait for work; if the client leaves before, cancel it."""
    this = asyncio.current_task()
    assert this is not None
    gone, has_left, is_done = asyncio.ensure_future(_gone(request)), False, False

    def leave(task: asyncio.Task[None]) -> None:
        nonlocal has_left
        if not task.cancelled() and not is_done:
            has_left = this.cancel()

    gone.add_done_callback(leave)
    try:
        return await work
    except asyncio.CancelledError:
        if has_left and not this.uncancel():
            raise ApiError(499, "the client has left", "client_left") from None  # nobody reads it
        raise
    finally:
        is_done = True
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def body_size(request: Request) -> int:
    """Return the size of a request that was read."""
    return len(getattr(request, "_body", b""))


def events(pieces: AsyncIterator[Any]) -> StreamingResponse:
    """Return a stream of server-sent events that ends with [DONE]; an error on the way is the last event."""
    return StreamingResponse(
        _lines(pieces), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


async def _lines(pieces: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    try:
        async for piece in pieces:
            yield b"data: " + to_bytes(piece) + b"\n\n"
    except ApiError as error:
        yield b"data: " + to_bytes(error_json(error.status_code, str(error.detail), error.code)) + b"\n\n"
    except NextwordError:
        yield b"data: " + to_bytes(error_json(500, INTERNAL, "internal_error")) + b"\n\n"
    except Exception:
        yield b"data: " + to_bytes(error_json(500, INTERNAL, "internal_error")) + b"\n\n"
        raise
    yield END_OF_STREAM


async def begun(pieces: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Wait for the first piece, so that an error before it is an answer of its own."""
    try:
        first = await anext(pieces)
    except StopAsyncIteration:
        return _all([], pieces)
    return _all([first], pieces)


async def _all(first: list[Any], rest: AsyncIterator[Any]) -> AsyncIterator[Any]:
    try:
        for piece in first:
            yield piece
        async for piece in rest:
            yield piece
    finally:
        await rest.aclose()  # type: ignore[attr-defined]
