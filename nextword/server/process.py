"""The process: it listens, serves, and at the end finishes what is under way; new requests get 503."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any, Protocol

import uvicorn

from nextword.api.serve import ServeSettings
from nextword.core.errors import ConfigError
from nextword.server.app import application, guarded
from nextword.server.models import Shelf, keep_for_good
from nextword.server.protocol import TimedProtocol

_HEADER_BYTES = 16 << 10
_CONNECTIONS = 2048
_LOOK = 0.05  # seconds between two looks at what is under way


class Beside(Protocol):
    """Work that goes on while the server answers."""

    async def run(self) -> None:
        """Do it."""
        ...

    def stop(self) -> None:
        """End it before it is done."""
        ...


def serve(
    shelf: Shelf, settings: ServeSettings, tell: Callable[[str], None], beside: Beside | None = None
) -> int:
    """Serve until a signal comes; return the exit code: 0 after SIGTERM, 130 after Ctrl-C."""
    listening = listen(settings)
    with listening:
        host, port = listening.getsockname()[:2]
        tell(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        server = Draining(shelf, settings, beside)
        keep_for_good()
        try:
            server.run(sockets=[listening])
        finally:
            if beside is not None:
                beside.stop()
    shelf.close()
    return 128 + signal.SIGINT if server.number == signal.SIGINT else 0


def listen(settings: ServeSettings) -> socket.socket:
    """Return a listening socket; raise where the address is taken or not of this machine."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((settings.host.strip("[]"), settings.port))
    except (OSError, UnicodeError) as error:
        made.close()
        said = error.strerror if isinstance(error, OSError) else "it is not a name"
        raise ConfigError(
            f"the server cannot listen on {settings.host}, port {settings.port} ({said}); choose another "
            "--port or --host"
        ) from error
    made.listen(1024)
    return made


class Draining(uvicorn.Server):
    """A server that, after a signal, finishes what is under way before it stops to listen."""

    def __init__(self, shelf: Shelf, settings: ServeSettings, beside: Beside | None = None) -> None:
        protocol = type("Protocol", (TimedProtocol,), {"seconds": settings.header_seconds})
        super().__init__(uvicorn.Config(
            guarded(application(shelf), settings),
            http=protocol, ws="none", lifespan="off", access_log=False, log_config=None, log_level="warning",
            server_header=False, proxy_headers=False, h11_max_incomplete_event_size=_HEADER_BYTES,
            limit_concurrency=_CONNECTIONS, timeout_keep_alive=75, timeout_graceful_shutdown=5,
        ))  # fmt: skip
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # bad requests are not news
        self.shelf, self.settings, self.beside = shelf, settings, beside
        self.number: int | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and with the work beside."""
        await super().startup(sockets)
        if self.beside is not None:
            self._working = asyncio.get_running_loop().create_task(self.beside.run())

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Drain on the first signal; a second one leaves at once."""
        loop = asyncio.get_running_loop()

        def handle(number: int, frame: FrameType | None) -> None:
            if self.number is not None:
                self.force_exit = self.should_exit = True
                return
            self.number = number
            self.shelf.is_draining = True
            loop.call_soon_threadsafe(self._begin_draining, loop)

        before: dict[int, Any] = {}
        with contextlib.suppress(ValueError):  # not in the main thread, as in tests
            before = {each: signal.signal(each, handle) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _begin_draining(self, loop: asyncio.AbstractEventLoop) -> None:
        self._drained = loop.create_task(self._drain())

    async def _drain(self) -> None:
        end = asyncio.get_running_loop().time() + self.settings.drain
        while self.shelf.under_way and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_LOOK)
        await asyncio.sleep(2 * _LOOK)  # the last answers are written
        self.should_exit = True
