"""``/metrics``: counters in the text form of Prometheus; labels are routes and models that exist."""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from nextword.server.errors import documented
from nextword.server.models import Shelf
from nextword.server.security import Asgi, Message, Receive, Scope, Send

router = APIRouter(tags=["server"])
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """What was answered: requests by route and status, and how long each took."""

    def __init__(self, routes: frozenset[str]) -> None:
        self.routes = routes
        self.answers: Counter[tuple[str, int]] = Counter()
        self.within: Counter[tuple[str, float]] = Counter()
        self.seconds: Counter[str] = Counter()

    def add(self, path: str, status: int, seconds: float) -> None:
        """Count one answer."""
        route = path if path in self.routes else "other"
        self.answers[route, status] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]
        for bound in _BOUNDS:
            if seconds <= bound:
                self.within[route, bound] += 1


class Counting:
    """An ASGI application around another one that counts what it answers."""

    def __init__(self, app: Asgi, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer and count."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            self.metrics.add(scope["path"], status, time.perf_counter() - began)


@router.get("/metrics", response_class=PlainTextResponse, responses=documented(401, 403))
async def metrics(http: Request) -> PlainTextResponse:
    """Tell what the server does, for Prometheus."""
    shelf: Shelf = http.app.state.shelf
    text = "".join(_lines(http.app.state.metrics, shelf))
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def _lines(found: Metrics, shelf: Shelf) -> Iterator[str]:
    yield _head("nextword_requests_total", "counter", "answers by route and status")
    for (route, status), count in sorted(found.answers.items()):
        yield f'nextword_requests_total{{route="{route}",code="{status}"}} {count}\n'
    yield _head("nextword_request_seconds", "histogram", "time until an answer is complete")
    for route, seconds in sorted(found.seconds.items()):
        total = sum(count for (each, _), count in found.answers.items() if each == route)
        for bound in _BOUNDS:
            count = found.within[route, bound]
            yield f'nextword_request_seconds_bucket{{route="{route}",le="{bound}"}} {count}\n'
        yield f'nextword_request_seconds_bucket{{route="{route}",le="+Inf"}} {total}\n'
        yield f'nextword_request_seconds_sum{{route="{route}"}} {seconds:.6f}\n'
        yield f'nextword_request_seconds_count{{route="{route}"}} {total}\n'
    models = shelf.loaded
    for name, kind, about, place in (
        ("nextword_rows_running", "gauge", "texts that are being continued or read", "running"),
        ("nextword_rows_taken", "gauge", "texts under way, with those that wait", "taken"),
        ("nextword_steps_total", "counter", "steps of the model", "counts.steps"),
        ("nextword_tokens_total", "counter", "tokens generated", "counts.generated_tokens"),
    ):
        yield _head(name, kind, about)
        for model in models:
            yield f'{name}{{model="{_escaped(model.name)}"}} {attrgetter(place)(model.worker)}\n'
    yield _head("nextword_ready", "gauge", "1 when models can be asked")
    yield f"nextword_ready {int(shelf.is_ready)}\n"
    yield _head("process_max_resident_memory_bytes", "gauge", "the most memory that was used")
    scale = 1 if sys.platform == "darwin" else 1024
    yield f"process_max_resident_memory_bytes {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale}\n"


def _head(name: str, kind: str, about: str) -> str:
    return f"# HELP {name} {about}\n# TYPE {name} {kind}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
