"""The page's own files: plain ES modules, a style sheet, an HTML file; the server hands them out as they are.

Nothing is built and nothing comes from another server, so that the page works without a network.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


@cache
def files() -> dict[str, tuple[bytes, str]]:
    """Return every file by its name, with its type; nothing else can be asked for."""
    found = {}
    for path in resources.files(__name__).iterdir():
        kind = KINDS.get(path.name.rpartition(".")[2])
        if kind is not None:
            found[path.name] = (path.read_bytes(), kind)
    return found
