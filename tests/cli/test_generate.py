"""`nextword generate`: prompt and continuation."""

import pytest


def test_generate_prints_prompt_and_continuation_and_notes_the_seed(nextword, saved_run):
    done = nextword("generate", saved_run, "--prompt", "the cat", "--max-tokens", 5)
    assert done.out.startswith("the cat ")
    assert "seed: " in done.err
    seed = done.err.split("seed: ")[1].split()[0]
    again = nextword("generate", saved_run, "--prompt", "the cat", "--max-tokens", 5, "--seed", seed)
    assert again.out == done.out
    assert "seed" not in again.err


@pytest.mark.parametrize("decode", ["greedy", "beam", "sample"])
def test_every_way_to_decode_can_be_asked_for(decode, nextword, saved_run):
    done = nextword("generate", saved_run, "--prompt", "the", "--decode", decode, "--max-tokens", 4, "--json")
    assert done.json["decode"] == decode
    assert done.json["texts"][0]["text"].startswith("the ")


def test_generate_takes_the_other_settings_by_set(nextword, saved_run):
    done = nextword(
        "generate", saved_run, "--set", "min_p=0.5", "--set", "generate.no_repeat=2", "--samples", 2
    )
    assert done.code == 0
    assert len(done.out.rstrip("\n").split("\n")) == 2
    wrong = nextword("generate", saved_run, "--top-p", 2)
    assert (wrong.code, "'generate.top_p' is 2.0" in wrong.err) == (1, True)
