"""``serve``: which runs are served, where, and to whom; the HTTP server itself is in ``server``."""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from nextword.core.errors import ConfigError
from nextword.core.settings import Settings
from nextword.store.names import resolve

KEY = "NEXTWORD_API_KEY"  # the environment variable that may hold the key
_SHORTEST, _LONGEST = 16, 1000  # characters of a key
_ID = re.compile(r"[^\x00-\x20\x7f/\\]{1,200}")


class ServeSettings(Settings):
    """Where the server listens, and how much it takes on."""

    host: str = Field("127.0.0.1", min_length=1, max_length=255, description="address to listen on")
    port: int = Field(8000, ge=0, le=65_535, description="port to listen on; 0: any free one")
    key: str | None = Field(None, repr=False, description="the key that every request must bring")
    insecure: bool = Field(False, description="listen on other addresses than loopback without a key")
    rows: int = Field(64, ge=1, le=4096, description="texts of a model that are continued together")
    waiting: int = Field(256, ge=0, le=65_536, description="requests of a model that wait; others get 429")
    body: int = Field(1 << 20, ge=1024, le=1 << 30, description="most bytes of a request")
    drain: float = Field(30.0, ge=0, le=3600, description="seconds that answers under way have at the end")
    header_seconds: float = Field(30.0, gt=0, le=3600, description="seconds for a request to arrive")

    @property
    def is_loopback(self) -> bool:
        """Tell whether only this machine can reach the server."""
        return is_loopback(self.host)


def settings(
    host: str = "127.0.0.1", port: int = 8000, key_file: str | None = None, insecure: bool = False
) -> ServeSettings:
    """Check the options of the command; a server that others can reach needs a key."""
    if not 0 <= port <= 65_535:
        raise ConfigError(f"'--port' is {port}; it must be from 0 to 65535")
    key = read_key(key_file, os.environ)
    made = ServeSettings(host=host, port=port, key=key, insecure=insecure)
    if not made.is_loopback and key is None and not insecure:
        raise ConfigError(
            f"'--host' is {host}, so other machines can reach the server, and there is no key; write one to "
            f"a file and use --api-key-file FILE (or set {KEY}), or keep --host 127.0.0.1"
        )
    return made


def read_key(file: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the key from a file, or else from the environment; None where there is none."""
    if file is None:
        found, place = environment.get(KEY), f"the environment variable {KEY}"
    else:
        place = f"'--api-key-file' {file}"
        try:
            if stat.S_ISDIR(os.stat(file).st_mode):
                raise ConfigError(f"{place} is a folder; it must be a file that holds the key")
            found = Path(file).read_text(encoding="utf-8").strip()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{place} is not UTF-8 text; it must hold one line: the key") from error
    if found is None:
        return None
    if (
        not _SHORTEST <= len(found) <= _LONGEST
        or not found.isascii()
        or not found.isprintable()
        or " " in found
    ):
        raise ConfigError(
            f"{place} does not hold a key: {_SHORTEST} to {_LONGEST} printable ASCII characters without "
            "spaces; make one with: python3 -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return found


def find_runs(names: Sequence[str]) -> dict[str, Path]:
    """Return the folders of runs by the ids under which they are served: the folders' names."""
    found: dict[str, Path] = {}
    for name in names:
        path = Path(os.path.realpath(resolve(name)))
        if path in found.values():
            continue
        if path.name in found:
            raise ConfigError(
                f"'{found[path.name]}' and '{path}' would both be served as '{path.name}'; rename one of them"
            )
        if not _ID.fullmatch(path.name):
            raise ConfigError(
                f"the folder name {path.name!r} cannot be a model's id, which has no spaces and control "
                "characters; rename it"
            )
        found[path.name] = path
    return found


def is_loopback(host: str) -> bool:
    """Tell whether an address is of this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
