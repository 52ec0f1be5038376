"""Errors in the one form that OpenAI's clients know: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as AnyHTTPException

from nextword.core.suggestions import nearest
from nextword.server.schemas import parameters

_log = logging.getLogger("nextword.server")
_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_SHOWN = 5  # problems of a request that are named


class ErrorBody(BaseModel):
    """What went wrong."""

    message: str = Field(description="one sentence")
    type: str = Field(description="the kind, such as invalid_request_error")
    param: str | None = Field(None, description="the parameter that is wrong")
    code: str = Field(description="what a program can test")


class ErrorAnswer(BaseModel):
    """The answer to every request that is refused."""

    error: ErrorBody


class ApiError(HTTPException):
    """A request that is refused, with a sentence for people and a code for programs."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str = "invalid_request",
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.code, self.param = code, param


def error_json(status: int, message: str, code: str, param: str | None = None) -> dict[str, Any]:
    """Return the body of an error."""
    kind = _KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what OpenAPI says of the errors of a route."""
    about = {
        400: "not possible with this model", 401: "no key, or a wrong one", 403: "wrong Host or Origin",
        404: "no such model", 408: "the request came too slowly", 413: "the request is too large",
        415: "the request is not application/json", 422: "a parameter is missing or out of its limits",
        429: "too many requests wait; try again after Retry-After seconds",
        503: "the server is ending, or the run is damaged",
    }  # fmt: skip
    return {status: {"model": ErrorAnswer, "description": about[status]} for status in statuses}


def streamed(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what OpenAPI says of a route whose answer may also be a stream of server-sent events."""
    events: dict[str, Any] = {"text/event-stream": {}}
    return {
        200: {"content": events, "description": "the answer, or a stream of its pieces"},
        **documented(*statuses),
    }


def invalid(problems: Sequence[Any]) -> JSONResponse:
    """Answer a request whose parameters are wrong."""
    message, param = describe(problems)
    return JSONResponse(error_json(422, message, "invalid_value", param), 422)


def refused(error: AnyHTTPException) -> JSONResponse:
    """Answer a request that a route, or the lack of one, refuses."""
    status = error.status_code
    code = getattr(error, "code", {404: "unknown_route", 405: "wrong_method"}.get(status, "refused"))
    said = str(error.detail) or "the request was refused"
    if not isinstance(error, ApiError):
        said = {
            404: "there is no such route; /openapi.json lists them",
            405: "another method is needed",
        }.get(status, said)
    param = getattr(error, "param", None)
    return JSONResponse(error_json(status, said, code, param), status, error.headers)


def internal() -> JSONResponse:
    """Answer when something of ours went wrong."""
    return JSONResponse(error_json(500, INTERNAL, "internal_error"), 500)


def install(app: FastAPI) -> None:
    """Answer every error of an application in the one form."""

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return invalid(error.errors())

    @app.exception_handler(AnyHTTPException)
    async def _refused(request: Request, error: AnyHTTPException) -> JSONResponse:
        return refused(error)

    @app.exception_handler(Exception)
    async def _internal(request: Request, error: Exception) -> JSONResponse:
        return internal()


INTERNAL = "an internal error; the server's log says more"


def describe(problems: Sequence[Any]) -> tuple[str, str | None]:
    """Say which parameters are wrong and what is allowed, without the values; and name the first."""
    said: list[str] = []
    first: str | None = None
    for problem in problems[:_SHOWN]:
        place = [str(part) for part in problem["loc"] if part not in ("body", "query", "path")]
        name = ".".join(part for part in place if _is_name(part)) or "the request"
        first = first or (name if name != "the request" else None)
        said.append(_sentence(problem, name) if place else str(problem["msg"]))
    more = len(problems) - _SHOWN
    return "; ".join(dict.fromkeys(said)) + (f"; and {more} more" if more > 0 else ""), first


def _sentence(problem: Mapping[str, Any], name: str) -> str:
    """Say what is wrong with one parameter."""
    kind, message = problem.get("type"), str(problem["msg"]).removeprefix("Value error, ")
    if kind == "extra_forbidden":
        guess = nearest(name.rpartition(".")[2], parameters())
        return f"unknown parameter '{name}'" + (f"; did you mean '{guess}'?" if guess else "")
    if kind == "none_required":
        return f"'{name}' is not possible here; leave it out"
    if message.startswith("Input should "):
        return f"'{name}' must {message.removeprefix('Input should ')}"
    return f"'{name}': {message[:1].lower()}{message[1:]}"


def _is_name(part: str) -> bool:
    """Tell whether a part of a place is ours: a field or a number, not a key or type that pydantic adds."""
    return (part.isidentifier() and part.islower() and len(part) < 40) or part.isdigit()
