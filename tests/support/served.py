"""Servers for tests: one in a thread of this process, on a free port, with runs trained on the spot."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nextword.api.serve import ServeSettings, find_runs
from nextword.server.models import Shelf
from nextword.server.process import Draining, listen

TEXT = "the cat sat on the mat .\nthe dog sat on the rug .\nthe cat saw the dog on the mat .\n" * 30


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The events of a stream without the last, which is [DONE]."""
        lines = [line.removeprefix(b"data: ") for line in self.body.split(b"\n\n") if line]
        assert lines[-1] == b"[DONE]"
        return [json.loads(line) for line in lines[:-1]]


@dataclass
class Site:
    """A server that runs, as a client sees it."""

    server: Draining
    shelf: Shelf
    port: int
    key: str | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: Any = None, method: str | None = None, **headers: str) -> Answer:
        """Send one request; ``body`` is sent as JSON, bytes as they are."""
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if sent is not None:
            given.setdefault("Content-Type", "application/json")
        if self.key is not None:
            given.setdefault("Authorization", f"Bearer {self.key}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method or ("GET" if sent is None else "POST"), path, sent, given)
            got = connection.getresponse()
            return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())
        finally:
            connection.close()

    def complete(self, model: str, prompt: Any, **more: Any) -> Answer:
        """Ask /v1/completions."""
        return self.ask("/v1/completions", {"model": model, "prompt": prompt, **more})


@contextmanager
def serving(*runs: Path | str, **settings: Any) -> Iterator[Site]:
    """Serve runs in a thread until the block ends."""
    chosen = ServeSettings(port=0, **settings)
    shelf = Shelf(find_runs([str(run) for run in runs]), chosen)
    shelf.open_all()
    with listen(chosen) as listening:
        server = Draining(shelf, chosen)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        until(lambda: server.started)
        try:
            yield Site(server, shelf, listening.getsockname()[1], chosen.key)
        finally:
            server.should_exit = server.force_exit = True
            thread.join(20)
            shelf.close()
            assert not thread.is_alive(), f"the server is still at:\n{_where(thread)}"


def _where(thread: threading.Thread) -> str:
    """Return the lines at which a thread is, and those of the threads that its event loop may wait for."""
    frames = sys._current_frames()
    waiting = [each for each in threading.enumerate() if each is thread or each.name.startswith("asyncio_")]
    stacks = {
        each.name: traceback.format_stack(frames[each.ident]) for each in waiting if each.ident in frames
    }
    return "\n".join(f"{name}:\n{''.join(stack)}" for name, stack in stacks.items())


def until(holds: Any, seconds: float = 20.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never held"
        time.sleep(0.01)
