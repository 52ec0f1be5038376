"""`Run.generate` and `Run.stream`: text, with how it was generated."""

import pytest

from nextword.core.errors import ConfigError


def test_generate_returns_the_text_with_its_facts(run):
    text = run.generate("the students", seed=1, max_tokens=4)
    assert text.startswith("the students")
    assert text == run.generate("the students", seed=1, max_tokens=4)
    assert (text.seed, text.reason in ("end", "length")) == (1, True)
    assert text.logprob < 0
    assert len(run.generate("the", samples=3, seed=1)) == 3
    assert len(run.generate("the", decode="beam", beam_size=4, n_best=2)) == 2
    assert run.generate("the", decode="greedy").seed is None


def test_stream_is_the_generated_text_in_pieces(run):
    assert (
        "".join(run.stream("the", seed=2, max_tokens=5)) == run.generate("the", seed=2, max_tokens=5) + "\n"
    )
    assert "".join(run.stream("the", seed=2, samples=2)).count("\n") == 2


def test_wrong_generation_setting_is_named(run):
    with pytest.raises(ConfigError, match="unknown argument 'temprature' of generate; did you mean 'temp"):
        run.generate(temprature=2)
    with pytest.raises(
        ConfigError, match=r"unknown setting 'generate\.temprature'; did you mean 'generate\."
    ):
        run.generate(set={"temprature": 2})
    with pytest.raises(ConfigError, match=r"'generate\.top_k' is -1; it must be 0 or more"):
        run.generate(top_k=-1)
    with pytest.raises(ConfigError, match="unknown decode 'greddy'; did you mean 'greedy'"):
        run.generate(decode="greddy")
