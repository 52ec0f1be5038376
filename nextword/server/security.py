"""Who may ask, and how much: Host, Origin, key, type and size of a request; headers of every answer.

A web page of another site can send requests to a server on this machine: by a form (so only JSON is taken),
by a script (so its Origin is refused), or under a name of its own that points here (DNS rebinding,
CVE-2024-28224: so the Host must be this machine's). These checks come before anything is read or parsed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import ipaddress
import json
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from nextword.api.serve import ServeSettings
from nextword.server.errors import ApiError, error_json

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

_CLOSE = {"Connection": "close"}
OPEN = frozenset({"/", "/live"})  # the routes that need no key
FILES = "/page/"  # nor do the page's files, which hold nothing secret: the page itself asks for the key
HEADERS = [
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data:; object-src 'none'; "
     b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]  # fmt: skip


class _Refused(Exception):  # noqa: N818 - an answer, not a failure
    def __init__(
        self, status: int, message: str, code: str, headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.headers = status, message, code, tuple(headers)


class Guard:
    """An ASGI application around another one: it refuses, or passes on what it has checked."""

    def __init__(self, app: Asgi, settings: ServeSettings) -> None:
        self.app, self.settings = app, settings
        self._key = None if settings.key is None else _digest(settings.key)
        self._own_names = {"localhost", socket.gethostname().lower()}
        self._is_loopback = settings.is_loopback
        self._host_of = lru_cache(maxsize=64)(self._own_host)  # nearly all requests have the same

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and answer it."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self.app(scope, receive, send)
            return
        begun = False

        async def with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        try:
            self._check(scope)
            await self.app(scope, self._bounded(receive), with_headers)
        except _Refused as refused:
            if begun:
                raise
            await _answer(refused, with_headers)

    def _check(self, scope: Scope) -> None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        host = self._check_host(headers)
        self._check_origin(headers, host)
        if self._key is not None and not _is_open(scope["path"]):
            self._check_key(headers)
        if scope["method"] in ("POST", "PUT", "PATCH"):
            self._check_body(headers)

    def _check_host(self, headers: dict[bytes, list[bytes]]) -> str:
        found = headers.get(b"host", [])
        host = self._host_of(found[0]) if len(found) == 1 else None
        if host is None:
            raise _Refused(403, "the Host header does not name this server", "wrong_host")
        return host

    def _own_host(self, given: bytes) -> str | None:
        """Return a Host header as a text; None where it does not name this server."""
        host = given.decode("latin-1").strip().lower()
        name = _name_of(host)
        return host if name is not None and (not self._is_loopback or self._is_own(name)) else None

    def _is_own(self, name: str) -> bool:
        if name in self._own_names or name.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(name.strip("[]")).is_loopback
        except ValueError:
            return False

    def _check_origin(self, headers: dict[bytes, list[bytes]], host: str) -> None:
        for origin in headers.get(b"origin", []):
            try:
                parts = urlsplit(origin.decode("latin-1").lower())
            except ValueError:
                parts = urlsplit("")
            if parts.scheme not in ("http", "https") or parts.netloc != host:
                raise _Refused(403, "requests of pages from other origins are refused", "wrong_origin")

    def _check_key(self, headers: dict[bytes, list[bytes]]) -> None:
        given = _given_key(headers.get(b"authorization", []))
        assert self._key is not None
        if given is None or not hmac.compare_digest(_digest(given), self._key):
            said = "a key is needed: Authorization: Bearer KEY" if given is None else "the key is wrong"
            asks = [(b"www-authenticate", b'Basic realm="nextword", charset="UTF-8"')]  # a browser then asks
            raise _Refused(401, said, "invalid_api_key", asks)

    def _check_body(self, headers: dict[bytes, list[bytes]]) -> None:
        kinds = headers.get(b"content-type", [])
        kind = kinds[0].split(b";")[0].strip().lower() if len(kinds) == 1 else b""
        if kind != b"application/json":
            raise _Refused(415, "the Content-Type must be application/json", "wrong_content_type")
        for length in headers.get(b"content-length", []):
            if not length.isdigit() or len(length) > 18 or int(length) > self.settings.body:
                raise self._too_large()

    def _bounded(self, receive: Receive) -> Receive:
        """Return a receive that counts bytes, since a chunked body has no length, and seconds."""
        size, more = 0, True
        end = asyncio.get_running_loop().time() + self.settings.header_seconds

        async def bounded() -> Message:
            nonlocal size, more
            if not more:
                return await receive()  # waits for the client to leave
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError as error:
                raise ApiError(408, "the request came too slowly", "too_slow", headers=_CLOSE) from error
            if message["type"] == "http.request":
                size, more = size + len(message.get("body", b"")), message.get("more_body", False)
                if size > self.settings.body:
                    refused = self._too_large()
                    raise ApiError(refused.status, refused.message, refused.code, headers=_CLOSE)
            return message

        return bounded

    def _too_large(self) -> _Refused:
        return _Refused(413, f"the request has more than {self.settings.body:,} bytes", "too_large")


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(FILES)


def _name_of(host: str) -> str | None:
    """Return the name in a Host header, without the port; None where it is not one."""
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if colon and not port.isdigit():
        return None
    name = name if colon else host
    plain = name.strip("[]").replace(".", "").replace("-", "").replace(":", "").replace("_", "")
    return name if plain.isalnum() and len(name) < 256 else None


def _given_key(headers: list[bytes]) -> str | None:
    """Return the key of an Authorization header: Bearer, or the password of Basic, as browsers send it."""
    if len(headers) != 1:
        return None
    scheme, _, rest = headers[0].decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).decode("utf-8").partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return None
    return None


def _digest(key: str) -> bytes:
    """Return a hash, so that the comparison tells nothing of the length either."""
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


async def _answer(refused: _Refused, send: Send) -> None:
    body = json.dumps(error_json(refused.status, refused.message, refused.code)).encode()
    headers = [
        (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"), *refused.headers,
    ]  # fmt: skip
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
