"""A browser for tests of the page: Debian's Chromium, which may talk to this machine only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
NAME = "<img·src=x·onerror=alert(1)>"  # of a run
EVIL = "<script>alert(1)</script>"  # a word
PATIENCE = 180_000  # milliseconds: the machine may be very busy


@dataclass
class Visit:
    """A page that is open, and what went wrong in it."""

    page: Any
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)  # requests that would have left this machine

    def check(self) -> None:
        """Nothing went wrong, and nothing was asked of another server."""
        assert self.errors == []
        assert self.outside == []


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser that is installed; nothing is downloaded."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def visiting(browser: Any, address: str, **how: Any) -> Iterator[Visit]:
    """Open an address in a window of its own."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **how})
    context.set_default_timeout(PATIENCE)
    visit = Visit(context.new_page())
    context.route("**/*", lambda route: _only_here(visit, route))
    visit.page.on("console", lambda message: _noted(visit, message))
    visit.page.on("pageerror", lambda error: visit.errors.append(f"exception: {error}"))
    visit.page.on("dialog", lambda dialog: _dismissed(visit, dialog))
    visit.page.goto(address)
    try:
        yield visit
    finally:
        context.close()


def _only_here(visit: Visit, route: Any) -> None:
    if urlsplit(route.request.url).hostname in ("127.0.0.1", "localhost"):
        route.fallback()
    else:
        visit.outside.append(route.request.url)
        route.abort()


def _dismissed(visit: Visit, dialog: Any) -> None:
    visit.errors.append(f"dialog: {dialog.message}")
    dialog.dismiss()


def _noted(visit: Visit, message: Any) -> None:
    if message.type in ("error", "warning"):
        visit.errors.append(f"{message.type}: {message.text}")
