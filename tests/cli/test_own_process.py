"""What only a process of its own can show: imports, signals, pipes."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = [sys.executable, "-m", "nextword"]


def _imported(*arguments, cwd=None):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "nextword", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, check=True,
    )  # fmt: skip
    return {line.split("|")[-1].strip() for line in done.stderr.split("\n") if "|" in line}


def test_help_imports_nothing_heavy():
    found = _imported("--help")
    assert not found & {"numpy", "pydantic", "numba", "torch", "tokenizers", "matplotlib", "rich"}


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, nextword; sys.exit(any(m in sys.modules for m in ('numpy', 'pydantic', 'typer')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_ngram_commands_never_import_torch(corpus, tmp_path):
    for arguments in (
        ("train", corpus, "--model", "ngram", "--out", tmp_path / "r"),
        ("eval", tmp_path / "r", corpus),
        ("score", tmp_path / "r", corpus),
    ):
        found = _imported(*arguments)
        assert "numpy" in found
        assert not found & {"torch", "numba", "matplotlib"}  # so small a text needs no compiled kernel either


def test_reader_that_goes_away_is_no_error(saved_run, tmp_path):
    text = tmp_path / "long.txt"
    text.write_text("the cat sat on the mat .\n" * 50_000)
    with subprocess.Popen(
        [*PROGRAM, "score", str(saved_run), str(text)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
        assert process.wait(60) == 128 + signal.SIGPIPE
    assert errors == b""


def _begun(process, folder):
    """Wait until training stands inside its run, or has ended."""
    deadline = time.monotonic() + 60
    while process.poll() is None and not list(folder.glob(".run.new-*")) and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_leaves_nothing_half_written(number, tmp_path):
    with subprocess.Popen(
        [*PROGRAM, "train", "-", "--model", "ngram", "--out", str(tmp_path / "run")],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write("the cat\n")  # and then it waits for more
        process.stdin.flush()
        _begun(process, tmp_path)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def _on_a_terminal(*arguments, cwd):
    """What a command shows where standard output and standard error are a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*PROGRAM, *map(str, arguments)], stdout=theirs, stderr=theirs, cwd=cwd)
    os.close(theirs)
    shown = b""
    with open(ours, "rb", buffering=0) as terminal:
        while True:
            try:
                piece = terminal.read(4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    assert process.wait(60) == 0
    return shown.decode()


def test_terminal_shows_bars_with_the_time_left(corpus, tmp_path):
    shown = _on_a_terminal("train", corpus, "--model", "ngram", "--out", "r", cwd=tmp_path)
    assert "read" in shown
    assert "100 %" in shown
    assert "0:00:0" in shown


def test_terminal_never_gets_the_control_characters_of_a_text(corpus, saved_run, tmp_path):
    (tmp_path / "t.txt").write_text("the \x1b]0;title\x07 cat\n")
    for verb in ("score", "filter"):
        shown = _on_a_terminal(verb, saved_run, "t.txt", cwd=tmp_path)
        assert "\x1b]0" not in shown
        assert "\\x1b]0;title\\x07" in shown


def test_shell_completion_offers_runs_models_and_commands(corpus, tmp_path):
    def completed(words):
        environment = {
            **os.environ, "_NEXTWORD_COMPLETE": "complete_bash", "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split())),
        }  # fmt: skip
        done = subprocess.run(
            PROGRAM, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
        )
        return done.stdout.split()

    (tmp_path / "runs").mkdir()
    subprocess.run(
        [*PROGRAM, "train", str(corpus), "--model", "ngram", "--out", "runs/mine"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    assert "train" in completed("nextword")
    assert {"latest", "mine"} <= set(completed("nextword eval"))
    assert {"auto", "ngram-katz"} <= set(completed("nextword train --model"))
    assert "words" in completed("nextword train --tokenizer")


def test_version_is_the_package_s():
    done = subprocess.run([*PROGRAM, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == "nextword 0.1.0\n"
