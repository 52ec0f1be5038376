"""Signals: the first one saves, the second one leaves at once."""

import signal
import subprocess
import sys
import textwrap

import pytest

from nextword.system.signals import Stop

BUSY = textwrap.dedent("""
    import hashlib, signal
    from nextword.system import signals
    signal.signal(signal.SIGINT, lambda *about: None)
    signals.watch()
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"long", b"salt", 2**31 - 1)
""")


def test_second_signal_leaves_at_once(monkeypatch):
    codes = []
    monkeypatch.setattr("os._exit", codes.append)
    with Stop() as stop:
        stop.save_on_signal()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert codes == [143]


def test_signal_before_there_is_anything_to_save_does_what_it_always_does():
    with pytest.raises(KeyboardInterrupt), Stop():
        signal.raise_signal(signal.SIGINT)
    with Stop() as stop:
        stop.save_on_signal()
        signal.raise_signal(signal.SIGTERM)
        assert (stop.name, stop.exit_code) == ("SIGTERM", 0)


def test_second_signal_leaves_at_once_while_a_compiled_function_runs():
    command = [sys.executable, "-c", BUSY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "\n"
        assert process.stderr.readline() == "stopping; a second Ctrl-C leaves at once\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
