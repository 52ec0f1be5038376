"""`nextword.mix` of count models, which needs no torch."""

import pytest

import nextword
from nextword.core.errors import ConfigError


def test_mixture_is_at_least_as_good_as_its_best_part(corpus, tmp_path):
    first = nextword.train(corpus, model="ngram", out=tmp_path / "a")
    second = nextword.train(corpus, model="ngram-add", tokenizer=str(tmp_path / "a"), out=tmp_path / "b")
    mixed = nextword.mix(first, tmp_path / "b", tune=corpus, out=tmp_path / "m")
    best = min(run.evaluate(corpus).nll for run in (first, second))
    assert mixed.evaluate(corpus).nll <= best + 1e-6
    copy = mixed.save(tmp_path / "copy")
    assert copy.score("the students").nll == mixed.score("the students").nll
    with pytest.raises(ConfigError, match="saved runs"):
        nextword.mix(nextword.train(corpus, model="ngram"), first, tune=corpus)
    with pytest.raises(ConfigError, match="at least two"):
        nextword.mix(first, tune=corpus)
