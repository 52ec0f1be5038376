"""System calls of a program, as strace writes them, and the order in which files must come to disk.

What survives a loss of power is decided by the order of the calls: write, fsync of the file, fsync of its
folder, rename, fsync of the parent, and only then the pointer and the removal of what is older.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CALLS = "write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,rmdir"
_LINE = re.compile(r"(\d+)\s+(?:<\.\.\. )?(\w+)(?: resumed>|\()(.*)")
_DESCRIPTOR = re.compile(r"^\d+<([^>]*)>")
_NAME = re.compile(r"(?:AT_FDCWD<([^>]*)>|\d+<([^>]*)>)?,? ?\"([^\"]*)\"")


@dataclass(frozen=True)
class Call:
    """One call: its name, the file or folder, and for a rename the new name."""

    kind: str  # write, fsync, rename, exchange, remove
    path: str
    to: str = ""


def allowed() -> str:
    """Why nothing can be traced here; empty if it can."""
    done = subprocess.run(["strace", "-f", "true"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"strace cannot trace here: {done.stderr.strip()[:100]}"


def trace(arguments: list[str], folder: Path) -> list[Call]:
    """Run ``nextword`` with these arguments in a folder; its calls, in order."""
    out = folder / "trace"
    command = ["strace", "-f", "-y", "--seccomp-bpf", "-s", "0", "-e", f"trace={CALLS}", "-o", str(out)]
    done = subprocess.run(
        [*command, sys.executable, "-m", "nextword", *arguments], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return parse(out.read_text(errors="replace"), str(folder))


def parse(text: str, folder: str) -> list[Call]:
    """Calls on files below a folder. Writes and fsyncs count when they end, renames when they begin."""
    found, begun = [], {}
    for line in text.split("\n"):
        match = _LINE.match(line)
        if match is None:
            continue
        process, name, rest = match.groups()
        if rest.endswith("<unfinished ...>"):
            begun[process, name] = rest
            if not name.startswith(("rename", "unlink", "rmdir")):
                continue
        elif "resumed>" in line:
            rest = begun.pop((process, name), "") + rest
            if name.startswith(("rename", "unlink", "rmdir")):
                continue
        if " = -1 " not in rest:
            found += [call for call in [_call(name, rest)] if call is not None]
    return [call for call in found if call.path.startswith(folder)]


def _call(name: str, rest: str) -> Call | None:
    if name in ("write", "pwrite64", "fsync", "fdatasync"):
        match = _DESCRIPTOR.match(rest)
        return None if match is None else Call("write" if "write" in name else "fsync", match[1])
    names = [os.path.join(match[1] or match[2] or "", match[3]) for match in _NAME.finditer(rest)]
    if name.startswith("rename") and len(names) == 2:
        return Call("exchange" if "RENAME_EXCHANGE" in rest else "rename", *names)
    return Call("remove", names[0]) if names else None


def check_folder(calls: list[Call], at: int) -> None:
    """The rename at a place: all files of the folder and itself were on disk; then the parent is."""
    source, target = calls[at].path, calls[at].to
    before = calls[:at]
    files = {call.path for call in before if call.kind == "write" and call.path.startswith(source + "/")}
    assert files, f"nothing was written to {source}"
    folder = _last(before, Call("fsync", source))
    for file in sorted(files):
        synced = _last(before, Call("fsync", file))
        assert synced > _last(before, Call("write", file)), f"{file} was written after its fsync"
        assert folder > synced, f"{source} was brought to disk before {file}"
    assert Call("fsync", os.path.dirname(target)) in calls[at:], f"the name {target} is not on disk"


def check_file(calls: list[Call], at: int) -> None:
    """The rename of one file at a place: it was on disk before, and its name is afterwards."""
    source, target = calls[at].path, calls[at].to
    assert _last(calls[:at], Call("fsync", source)) > _last(calls[:at], Call("write", source))
    assert Call("fsync", os.path.dirname(target)) in calls[at:]


def _last(calls: list[Call], wanted: Call) -> int:
    places = [at for at, call in enumerate(calls) if call == wanted]
    assert places, f"there is no {wanted.kind} of {wanted.path}"
    return places[-1]
