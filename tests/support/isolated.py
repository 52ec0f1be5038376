"""A server with no network but its own loopback and no file that it can write; started under ``unshare``.

    unshare --map-root-user --net --mount python isolated.py RUN...

Serves the runs, asks each of them for a text, ends the server, and prints what came as JSON.
"""

from __future__ import annotations

import fcntl
import json
import signal
import socket
import struct
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x1 | 0x40  # of Linux: SIOCSIFFLAGS, IFF_UP and IFF_RUNNING
_SERVE = [sys.executable, "-m", "nextword", "serve", *sys.argv[1:], "--port", "0", "--json"]


def with_loopback() -> None:
    """Turn on the loopback interface, which a new network has, but off."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))


def without_writing() -> bool:
    """Make every disk read-only for this process and its children; return whether writing fails.

    What a disk forbids already (``nosuid`` and the like) must be said again, or the change is refused.
    """
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, options = line.split()[4:6]
        kept = [each for each in options.split(",") if each != "rw"]
        command = ["mount", "-o", ",".join(["remount", "bind", "ro", *kept]), place]
        subprocess.run(command, capture_output=True)
    try:
        Path(sys.argv[1]).with_name("written").touch()
    except OSError:
        return True
    return False


def ask(address: str, model: str) -> Any:
    """Return the answer to one question."""
    body = json.dumps({"model": model, "prompt": "the cat", "max_tokens": 8, "seed": 1}).encode()
    request = urllib.request.Request(f"{address}v1/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as got:
        return json.load(got)["choices"][0]["text"]


def main() -> None:
    """Serve, ask, end."""
    with_loopback()
    if not without_writing():
        print(json.dumps({"read only": False}))
        return
    server = subprocess.Popen(_SERVE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        texts = [ask(address, Path(run).name) for run in sys.argv[1:]]
        server.send_signal(signal.SIGTERM)
        print(json.dumps({"read only": True, "texts": texts, "exit": server.wait(120)}))
    finally:
        server.kill()


if __name__ == "__main__":
    main()
