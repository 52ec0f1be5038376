"""The application: every route in its own file, put together here."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI
from fastapi.routing import APIRoute

from nextword.api.serve import ServeSettings
from nextword.server import chat, completions, embeddings, errors, health, metrics, predict, screens, tokens
from nextword.server.direct import Direct
from nextword.server.models import Shelf
from nextword.server.security import Asgi, Guard


def application(shelf: Shelf) -> FastAPI:
    """Return the routes around the served runs; ``app.state.shelf`` holds them."""
    app = FastAPI(
        title="nextword",
        version=version("nextword"),
        description="Language models over HTTP: completions that also score, for every family.",
        docs_url=None,  # its scripts come from other servers
        redoc_url=None,
    )
    app.state.shelf = shelf
    errors.install(app)
    routes: list[APIRoute] = []
    for part in (completions, chat, embeddings, predict, tokens, health, metrics, screens):
        app.include_router(part.router)
        routes += [route for route in part.router.routes if isinstance(route, APIRoute)]
    app.state.routes = routes
    app.state.metrics = metrics.Metrics(frozenset({"/openapi.json", *(route.path for route in routes)}))
    return app


def guarded(app: FastAPI, settings: ServeSettings) -> Asgi:
    """Return the application behind the checks of security.py: what the process serves."""
    return metrics.Counting(Guard(Direct(app, app.state.routes), settings), app.state.metrics)
