"""``nextword serve``: the process, its options and its end."""

import json
import signal
import subprocess
import sys
import urllib.request

import pytest

import nextword
from nextword.api.serve import settings
from nextword.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("the cat sat\n" * 20)
    nextword.train("t.txt", model="ngram", out="counts", set={"model.order": 2})
    return "counts"


# 17, 30 of the security checks: where it listens, and how it gets a key


def test_other_addresses_than_loopback_need_a_key(run, capsys, monkeypatch):
    monkeypatch.delenv("NEXTWORD_API_KEY", raising=False)
    assert main.run(["serve", run, "--host", "0.0.0.0"]) == 1
    assert "--api-key-file" in capsys.readouterr().err
    assert settings().host == "127.0.0.1"
    assert settings("0.0.0.0", insecure=True).key is None  # asked for in so many words
    monkeypatch.setenv("NEXTWORD_API_KEY", "a-key-of-sixteen-letters")
    assert settings("0.0.0.0").key == "a-key-of-sixteen-letters"


def test_key_on_the_command_line_is_refused_and_never_shown(run, capsys, tmp_path):
    assert main.run(["serve", run, "--api-key", "a-key-of-sixteen-letters"]) == 2
    (tmp_path / "key").write_text("a-key-of-sixteen-letters\n")
    assert "sixteen" not in repr(settings(key_file=str(tmp_path / "key")))


def test_port_that_is_taken_is_one_sentence(run, capsys):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main.run(["serve", run, "--port", str(taken.getsockname()[1])]) == 1
    assert "choose another --port" in capsys.readouterr().err


def test_run_that_is_not_there_is_an_error_before_listening(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main.run(["serve", "nothing"]) == 1
    assert "there is no run 'nothing'" in capsys.readouterr().err


def test_process_serves_without_torch_and_ends_with_0_after_sigterm(run):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from nextword.cli.main import main; main(['serve', 'counts', '--port', '0', '--json'])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        said = json.loads(process.stdout.readline())
        assert said["models"] == ["counts"]
        body = json.dumps({"model": "counts", "prompt": "the", "max_tokens": 2, "temperature": 0}).encode()
        asked = urllib.request.Request(
            said["address"] + "v1/completions", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=20) as answer:
            assert json.load(answer)["choices"][0]["text"] == " cat sat"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# 36: it needs neither a network nor a folder that can be written to


WATCHED = """
import os, sys
def watch(event, about):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        os._exit(9)
    if event == "open" and "counts" in str(about[0]) and about[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        os._exit(9)
    if event in ("os.mkdir", "os.rename", "os.remove") and "counts" in str(about[0]):
        os._exit(9)
sys.addaudithook(watch)
from nextword.cli.main import main; main(["serve", "counts", "--port", "0", "--json"])
"""


def test_server_connects_to_nobody_and_writes_nothing_into_a_run(run):
    process = subprocess.Popen([sys.executable, "-c", WATCHED], stdout=subprocess.PIPE, text=True)
    try:
        address = json.loads(process.stdout.readline())["address"]
        body = json.dumps({"model": "counts", "prompt": "the", "max_tokens": 2}).encode()
        for path, data in (("", None), ("api/runs", None), ("metrics", None), ("v1/completions", body)):
            asked = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
            with urllib.request.urlopen(asked, timeout=20) as answer:
                assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
