"""``nextword lm-eval``: what it scores, and what it says without the harness."""

import importlib.util
import math

import pytest

import nextword
from nextword.api.lm_eval import continued, loglikelihoods
from nextword.cli import main
from nextword.core.contracts import START


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("the cat sat on the mat\n" * 20)
    return nextword.train("t.txt", model="ngram", out="counts", set={"model.order": 3})


@pytest.mark.skipif(importlib.util.find_spec("lm_eval") is not None, reason="lm_eval is installed")
def test_missing_harness_is_one_sentence_with_the_command(run, capsys):
    assert main.run(["lm-eval", "counts", "lambada_openai"]) == 1
    assert "pip install 'lm-eval[api]'" in capsys.readouterr().err


def test_loglikelihoods_are_those_of_score(run):
    ids = [int(each) for each in run.tokenizer.encode("the cat sat on")]
    scores = [token.logprob for token in run.score("the cat sat on").tokens]
    found = loglikelihoods(run, [([START], ids), (ids[:2], ids[2:]), ([START, *ids[:3]], ids[3:])])
    assert [logp for logp, _ in found] == pytest.approx([math.fsum(scores[n:4]) for n in (0, 2, 3)])
    assert [greedy for _, greedy in found] == [True, True, True]
    assert loglikelihoods(run, [(ids[:1], [ids[3]])])[0][1] is False


def test_continuation_ends_before_a_stop_text(run):
    assert continued(run, "the cat", {"until": [" on"], "max_gen_toks": 9}) == " sat"
