"""The blocks of docs/serve.md that ask a server are run against one: curl, Python and JavaScript."""

import json
import re
import subprocess
import sys

import pytest
from places import ROOT
from served import TEXT, serving

import nextword

PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|py|js)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blocks")
    (folder / "t.txt").write_text(TEXT)
    nextword.train(str(folder / "t.txt"), model="ngram", out=str(folder / "old"), set={"model.order": 3})
    with serving(folder / "old") as found:
        yield found


def run(site, kind, block):
    script = ["node", "--input-type=module", "-e"]
    program = {"sh": ["bash", "-c"], "py": [sys.executable, "-c"], "js": script}
    command = [*program[kind], block.replace(ADDRESS, site.address)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_page_has_a_block_of_each_language():
    assert [kind for kind, _ in BLOCKS] == ["sh", "py", "js", "sh"]


@pytest.mark.needs("curl")
def test_curl_gets_an_answer_and_scores(site):
    answer, scores = (json.loads(run(site, kind, block)) for kind, block in BLOCKS if kind == "sh")
    assert answer["choices"][0]["text"]
    found = scores["choices"][0]["logprobs"]
    assert len(found["token_logprobs"]) == len(found["tokens"]) == 5
    assert all(len(top) >= 2 for top in found["top_logprobs"])


@pytest.mark.needs("openai")
def test_client_in_python_prints_answers(site):
    assert run(site, *BLOCKS[1]).strip()


@pytest.mark.needs("node")
def test_fetch_in_javascript_prints_an_answer(site):
    assert run(site, *BLOCKS[2]).strip()
