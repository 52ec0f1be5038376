"""The command blocks of the documents, and how they are run: in order, in one folder for each document.

Comments before a block change how it is tested, not what readers see:

``<!-- test: skip, REASON -->``        the next block is not run
``<!-- test: output differs, REASON -->``  the next block is run, but its output is not compared
``<!-- test: minutes=0.05 -->``        from here on ``--minutes M`` and ``minutes=M`` are this many
``<!-- test: steps=20 -->``            from here on ``train.epochs=N`` becomes this many steps
``<!-- test: needs CORPUS -->``        from here on blocks are run only where this corpus is available
``<!-- test: file NAME -->``           the reader's own file is there from here on (400 lines of text)
``<!-- test: run python CODE -->``     makes what the reader has from elsewhere
``<!-- test: save NAME -->``           the next block is a file: it is written, not run
``<!-- test: serves -->``              each command of the next block is a server: it is asked for its models,
                                       on a free port, and stopped
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from places import ROOT

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$|^<!-- test: (.*?) -->$", re.MULTILINE | re.DOTALL)
PROGRAMS = (
    "nextword",
    "printf",
    "cat",
    "cmp",
    "zcat",
    "head",
    "make",
    "pip",
    "torchrun",
    "git",
    "mkdir",
    "cp",
)
CPU_SECONDS = 600  # most for one process of a command, however busy the machine is
SECONDS = 7200  # most for one that waits and computes nothing
_NUMBER = re.compile(r"(?:(?<!\w)[+-])?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")  # with its sign


@dataclass(frozen=True)
class Command:
    """One command of a document, or a block of Python; ``skipped`` says why it cannot be run."""

    document: str
    line: int
    text: str
    is_python: bool = False
    shown: tuple[str, ...] = ()  # the output as the document shows it
    skipped: str = ""
    needs: str = ""  # a corpus
    serves: bool = False  # it answers over HTTP until it is stopped

    def __str__(self) -> str:
        return f"{self.document}:{self.line}: {self.text}"


def documents() -> list[Path]:
    """Every document with blocks."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(path: Path) -> Iterator[Command]:
    """Every command of a document, in order; the marks have been applied."""
    text = path.read_text(encoding="utf-8")
    name, skipped, saved, differs, serves = path.name, "", "", False, False
    limits, needs = {"minutes": "", "steps": ""}, ""
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        kind, body, mark = found.groups()
        if mark is not None:
            word, _, rest = mark.partition(" ")
            if word.partition("=")[0] in limits:
                limits |= [word.split("=")]
            elif word == "needs":
                needs = rest
            elif mark.startswith("output differs,"):
                differs = True
            elif word == "skip,":
                skipped = rest
            elif word == "save":
                saved = rest
            elif mark == "serves":
                serves = True
            elif word == "file":
                yield Command(name, line, _own_file(rest), True)
            elif word == "run":
                yield Command(name, line, rest.removeprefix("python "), True)
            else:
                raise ValueError(f"{name}:{line}: unknown mark '{mark}'")
            continue
        if saved:
            yield Command(name, line + 1, f"open({saved!r}, 'w', encoding='utf-8').write({body!r})", True)
        for each in () if saved else _in_block(name, line, kind, _shorter(body, **limits)):
            shown = () if skipped or differs else each.shown
            yield replace(each, shown=shown, skipped=skipped, needs=needs, serves=serves)
        skipped, saved, differs, serves = "", "", False, False


def _in_block(name: str, line: int, kind: str, body: str) -> Iterator[Command]:
    if kind == "python":
        yield Command(name, line + 1, body, True)
        return
    rows = re.sub(r" \\\n *", " ", body).rstrip("\n").split("\n")
    if any(row.startswith("$ ") for row in rows):
        at = 0
        while at < len(rows):
            end = at + 1
            while end < len(rows) and not rows[end].startswith("$ "):
                end += 1
            if rows[at].startswith("$ "):
                yield Command(name, line + 1 + at, rows[at][2:], False, tuple(rows[at + 1 : end]))
            at = end
    elif rows[0].startswith((*(f"{each} " for each in PROGRAMS), "#!")):
        for at, row in enumerate(rows):
            if row.strip() and not row.startswith("#"):
                yield Command(name, line + 1 + at, row)


def _shorter(body: str, minutes: str, steps: str) -> str:
    if minutes:
        body = re.sub(r"(--minutes |minutes=)[\d.]+", rf"\g<1>{minutes}", body)
    return re.sub(r"train\.(?:epochs|steps)=\d+", f"train.steps={steps}", body) if steps else body


def _own_file(name: str) -> str:
    return f"import documents; documents.write_text({name!r})"


def write_text(name: str) -> None:
    """Write a text as a reader would have one: sentences that differ by name and place."""
    seed = sum(name.encode())
    people, things = (
        ("the teacher", "a student", "my sister", "the mayor"),
        ("letter", "window", "book", "door"),
    )
    lines = [
        f"{people[(at * 7 + seed) % 4]} opened the {things[(at * 5 + at // 4) % 4]} "
        f"number {(at * seed) % 13} today ."
        for at in range(400)
    ]
    Path(name).write_text("".join(line + "\n" for line in lines))


def copy_configs() -> None:
    """Copy the recipes, which readers have in their checkout, with small sizes and few steps."""
    Path("configs").mkdir()
    small = {"steps": 40, "epochs": 10, "hidden": 64, "batch": 8}  # enough to learn something
    for path in (ROOT / "configs").glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        for name, value in small.items():
            text = re.sub(rf"(?m)^{name} = \d+", f"{name} = {value}", text)
        (Path("configs") / path.name).write_text(text, encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    """A shell in which ``nextword``, ``python`` and ``torchrun`` are those that are tested."""
    programs = folder / ".programs"
    programs.mkdir(exist_ok=True)
    own = {"nextword": "-m nextword", "python": "", "torchrun": "-m torch.distributed.run"}
    for name, text in own.items():
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {text} "$@"\n')
        script.chmod(0o755)
    paths = os.pathsep.join((str(ROOT), str(ROOT / "tests" / "support")))
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": paths, "COLUMNS": "400"}


def run(command: Command, folder: Path) -> str:
    """Run a command in a folder and return what it printed; it must succeed."""
    if command.serves:
        return serve(command, folder)
    typed = [sys.executable, "-c", command.text] if command.is_python else ["bash", "-c", command.text]
    done = subprocess.run(
        typed, cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=SECONDS, preexec_fn=limit, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout[-1000:]}{done.stderr[-2000:]}"
    return done.stdout + done.stderr


def limit() -> None:
    """Let this process and each that it starts end after its processor time."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def serve(command: Command, folder: Path) -> str:
    """Start a server on a free port, ask which models it has, stop it; it must end well."""
    words = command.text.partition("#")[0]
    process = subprocess.Popen(
        ["bash", "-c", f"exec {words} --port 0"], cwd=folder, env=environment(folder),
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=limit,
    )  # fmt: skip
    alarm = threading.Timer(SECONDS, os.killpg, (process.pid, signal.SIGKILL))
    alarm.start()
    assert process.stderr is not None
    printed = ""
    try:
        while (found := re.search(r"^serving (?:.* )?at (http://\S+/)", printed, re.MULTILINE)) is None:
            line = process.stderr.readline()
            assert line, f"{command}\n{printed}"
            printed += line
        with urllib.request.urlopen(f"{found[1]}v1/models", timeout=60) as answer:
            told = json.load(answer)
        served = [*told["data"], *told["training"]]
        process.send_signal(signal.SIGTERM)
        printed += process.stderr.read()
        assert process.wait(60) == 0, f"{command}\n{printed}"
    finally:
        alarm.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stderr.close()
    assert served, str(command)
    return printed


def missing(command: Command, printed: str) -> list[str]:
    """The shown lines that were not printed; numbers and bars may differ, and … stands for anything."""
    rows = {_masked(row) for row in printed.split("\n")}
    return [
        row for row in command.shown if row.strip() and not any(_same(_masked(row), each) for each in rows)
    ]


def _masked(row: str) -> str:
    row = re.sub("[█▉▊▋▌▍▎▏]+", "", row)  # as wide as the terminal lets them
    return " ".join(re.sub(r"-+", "-", re.sub(r"\b[kMG]B\b", "B", _NUMBER.sub("0", row))).split())


def _same(shown: str, printed: str) -> bool:
    parts = [re.escape(part.strip()) for part in shown.split("…")]
    return re.fullmatch(r".*".join(parts), printed) is not None
