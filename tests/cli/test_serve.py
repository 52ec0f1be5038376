"""``nextword serve``: the process, its options and its end."""

import json
import signal
import subprocess
import sys
import urllib.request

import pytest

import nextword
from nextword.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("the cat sat\n" * 20)
    nextword.train("t.txt", model="ngram", out="counts", set={"model.order": 2})
    return "counts"


def test_other_addresses_than_loopback_need_a_key(run, capsys, monkeypatch):
    monkeypatch.delenv("NEXTWORD_API_KEY", raising=False)
    assert main.run(["serve", run, "--host", "0.0.0.0"]) == 1
    assert "--api-key-file" in capsys.readouterr().err


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
