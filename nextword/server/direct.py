"""Requests of JSON go straight to the function of their route.

FastAPI describes the routes in /openapi.json and answers all others. For a function that takes a request and
one checked body, what it does at every request (its own middlewares, dependencies, exit stacks, telemetry)
costs more than the checks and the answer themselves; here the body is read, checked and handed over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, get_type_hints

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from nextword.server.body import parse
from nextword.server.errors import ApiError, internal, invalid, refused
from nextword.server.security import Message, Receive, Scope, Send

_MISSING = [{"loc": ("body",), "msg": "Field required"}]


class _Target(NamedTuple):
    """The function of a route, and the model of its body."""

    function: Callable[[Request, Any], Awaitable[Response]]
    model: type[BaseModel]


class Direct:
    """An ASGI application around FastAPI's: it answers what has a body of JSON, and passes on the rest."""

    def __init__(self, app: FastAPI, routes: Iterable[APIRoute]) -> None:
        self.app = app
        found = {route.path: _target(route) for route in routes}
        self._targets = {path: target for path, target in found.items() if target is not None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        target = self._targets.get(scope["path"]) if scope["type"] == "http" else None
        if target is None or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        scope["app"] = self.app
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            response = await _respond(target, Request(scope, receive))
            await response(scope, receive, noting)
        except Exception:  # of ours: the client gets a sentence, and the server's log the rest
            if not begun:
                await internal()(scope, receive, send)
            raise


async def _respond(target: _Target, request: Request) -> Response:
    try:
        data = await request.body()
        if not data:
            return invalid(_MISSING)
        asked = target.model.__pydantic_validator__.validate_python(parse(data), from_attributes=True)
        return await target.function(request, asked)
    except ValidationError as error:
        return invalid(error.errors(include_url=False, include_context=False, include_input=False))
    except HTTPException as error:
        return refused(error)
    except ClientDisconnect:
        return refused(ApiError(499, "the client has left", "client_left"))  # nobody reads it


def _target(route: APIRoute) -> _Target | None:
    """Return the function of a route that takes a request and a body, and nothing else."""
    hints = get_type_hints(route.endpoint)
    hints.pop("return", None)
    kinds = list(hints.values())
    if route.methods != {"POST"} or len(kinds) != 2 or kinds[0] is not Request:
        return None
    return _Target(route.endpoint, kinds[1]) if issubclass(kinds[1], BaseModel) else None
