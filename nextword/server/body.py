"""Strict JSON: what Python's reader lets through is refused, with the place where that helps.

Python accepts NaN, 1e999 as infinity, duplicate keys, integers of any length and lone surrogates; each is
refused here, and so is nesting that no request needs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from nextword.server.errors import ApiError

_DIGITS = 20  # an integer of 64 bits has at most 19, and a sign


class StrictRequest(Request):
    """A request whose JSON is read strictly."""

    async def json(self) -> Any:
        """Read the body as JSON; raise `ApiError` where it is not."""
        return parse(await self.body())


class StrictRoute(APIRoute):
    """A route that reads its body strictly; routers name it as their ``route_class``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler so that it gets a `StrictRequest`."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return strict


def parse(data: bytes) -> Any:
    """Read JSON; raise a 422 that says what is wrong with it."""
    try:
        text = data.decode("utf-8")
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_float
        )
    except UnicodeDecodeError as error:
        raise _wrong(f"the body is not UTF-8 (byte {error.start})") from error
    except RecursionError as error:
        raise _wrong("the body is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise _wrong(f"the body is not JSON: {error.msg} at character {error.pos}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _wrong("a key is duplicated in an object")
    return made


def _constant(name: str) -> Any:
    raise _wrong(f"{name} is not a number in JSON")


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise _wrong("an integer has too many digits")
    return int(digits)


def _float(digits: str) -> float | int:
    value = float(digits)
    if not math.isfinite(value):
        raise _wrong("a number is too large")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value  # JSON has one kind: 5.0 is 5


def _wrong(message: str) -> ApiError:
    return ApiError(422, message, "invalid_json")
