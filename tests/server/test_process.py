"""The end of a server: what is under way is finished, new requests are refused, the exit code is 0."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from served import TEXT

import nextword


@pytest.fixture
def process(tmp_path, monkeypatch):
    """A server in a process of its own, and its address."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text(TEXT)
    nextword.train("t.txt", model="ngram", out="counts", set={"model.order": 3})
    code = "from nextword.cli.main import main; main(['serve', 'counts', '--port', '0', '--json'])"
    made = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield made, json.loads(made.stdout.readline())["address"]
    finally:
        made.kill()
        made.communicate()


def ask(address, path, body=None, answers=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as got:
            found = (got.status, json.load(got))
    except urllib.error.HTTPError as error:
        with error:
            found = (error.code, json.load(error))
    if answers is not None:
        answers.append(found)
    return found


def test_sigterm_under_load_finishes_answers_and_exits_with_0(process):
    made, address = process
    long = {"model": "counts", "prompt": "the", "max_tokens": 3000, "logit_bias": {"2": -100}}
    answers = []
    threads = [
        threading.Thread(target=ask, args=(address, "v1/completions", long, answers)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    while "nextword_rows_taken" not in (text := metrics(address)) or taken(text) < 6:
        time.sleep(0.02)
    made.send_signal(signal.SIGTERM)
    refused = []
    while made.poll() is None and not refused:
        try:
            status, _ = ask(address, "ready")
        except (urllib.error.URLError, OSError):
            break
        refused += [status] if status == 503 else []
    for thread in threads:
        thread.join(60)
    assert made.wait(60) == 0
    assert [status for status, _ in answers] == [200] * 6
    assert all(found["usage"]["completion_tokens"] == 3000 for _, found in answers)
    assert refused == [503]


def metrics(address):
    with urllib.request.urlopen(address + "metrics", timeout=20) as got:
        return got.read().decode()


def taken(text):
    return int(text.partition('nextword_rows_taken{model="counts"} ')[2].partition("\n")[0])


def test_ctrl_c_exits_with_130(process):
    made, address = process
    assert ask(address, "live")[0] == 200
    os.kill(made.pid, signal.SIGINT)
    assert made.wait(30) == 130
    assert "Traceback" not in made.stderr.read()
