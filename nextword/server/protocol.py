"""A connection that must not be slow: one that sends no whole request in time is closed.

uvicorn waits for headers as long as a client likes, so that a few hundred silent connections hold the server
("slow loris"); here a timer runs whenever a request is awaited. It also sends the head of an answer by
itself; here all that is written in one turn of the event loop is sent at once.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_MOST = 1 << 16  # bytes that wait for the end of a turn


class Gathering:
    """A transport that sends what is written in one turn of the event loop by one call of the system."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._waiting: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Take bytes; they are sent before the loop waits for anything."""
        if not data:
            return
        if not self._waiting:
            self._loop.call_soon(self._send)
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= _MOST:
            self._send()

    def close(self) -> None:
        """Send the rest, then close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._waiting:
            data, self._waiting, self._size = b"".join(self._waiting), [], 0
            if not self._transport.is_closing():
                self._transport.write(data)


class TimedProtocol(H11Protocol):
    """HTTP/1.1 with a limit of time for the headers of the first request; later ones have keep-alive's."""

    seconds = 30.0

    def connection_made(self, transport: Any) -> None:
        """Start the timer."""
        super().connection_made(transport)
        self.transport = Gathering(transport, self.loop)  # type: ignore[assignment]
        self._slow: asyncio.TimerHandle | None = self.loop.call_later(self.seconds, self._close_if_waiting)

    def data_received(self, data: bytes) -> None:
        """Read; while a request is incomplete, the timer goes on."""
        keeps = self.cycle is not None and self.cycle.response_complete and self._slow is None
        super().data_received(data)
        if keeps and (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
            self._slow = self.loop.call_later(self.seconds, self._close_if_waiting)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        if self._slow is not None:
            self._slow.cancel()
        super().connection_lost(exc)

    def _close_if_waiting(self) -> None:
        self._slow = None
        if (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
            self.transport.close()
