"""A connection that must not be slow: one that sends no whole request in time is closed.

uvicorn waits for headers as long as a client likes, so that a few hundred silent connections hold the server
("slow loris"); here a timer runs whenever a request is awaited.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedProtocol(H11Protocol):
    """HTTP/1.1 with a limit of time for the headers of the first request; later ones have keep-alive's."""

    seconds = 30.0

    def connection_made(self, transport: Any) -> None:
        """Start the timer."""
        super().connection_made(transport)
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
