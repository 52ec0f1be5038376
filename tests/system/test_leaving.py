"""A second Ctrl-C ends the program although a compiled function keeps Python's handlers waiting."""

import signal
import subprocess
import sys
import textwrap

BUSY = textwrap.dedent("""
    import hashlib, signal
    from nextword.system import leaving
    signal.signal(signal.SIGINT, lambda *about: None)
    leaving.watch()
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"long", b"salt", 2**31 - 1)
""")


def test_second_signal_leaves_at_once_while_a_compiled_function_runs():
    command = [sys.executable, "-c", BUSY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "\n"
        assert process.stderr.readline() == "stopping; a second Ctrl-C leaves at once\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
