"""`nextword.train`: arguments, notes, limits."""

import numpy as np
import pytest
from small_texts import TWO_DOCUMENTS

import nextword
from nextword.api import train
from nextword.core.errors import ConfigError, Stopped
from nextword.core.events import Stage
from nextword.core.family import Cost


def test_training_without_out_leaves_nothing_on_disk(corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = nextword.train(str(corpus))
    assert run.path is None
    assert list(tmp_path.iterdir()) == []
    assert "in memory" in repr(run)


def test_out_keeps_the_run_and_load_opens_it(corpus, tmp_path):
    run = nextword.train([corpus], model="ngram", out=tmp_path / "r")
    again = nextword.load(tmp_path / "r", verify=True)
    assert run.path == again.path == tmp_path / "r"
    assert run.score("the students").nll == again.score("the students").nll


def test_wrong_argument_of_train_is_named(corpus):
    with pytest.raises(ConfigError, match="unknown argument 'tokeniser' of train; did you mean 'tokenizer'"):
        nextword.train(corpus, tokeniser="words")


def test_minutes_that_will_hardly_do_are_noted(corpus, caplog):
    nextword.train(corpus, model="ngram", minutes=0.0001)
    assert "more than minutes=0.0001" in caplog.text


def test_notes_go_to_the_log(corpus, caplog):
    nextword.train(corpus)
    assert "auto chose the model 'ngram-good-turing'" in caplog.text


def test_memory_limit_changes_no_number(corpus, tmp_path):
    free = nextword.train(corpus, model="ngram", out=tmp_path / "a")
    # torch may be loaded by other tests of this process, and its memory counts
    nextword.train(corpus, model="ngram", set={"train.memory": "2G"}, out=tmp_path / "b")
    for name in free.model.trie.named():
        np.testing.assert_allclose(np.load(tmp_path / "a" / name), np.load(tmp_path / "b" / name), rtol=1e-6)
    assert not (tmp_path / "b" / "scratch").exists()


def test_estimate_keeps_to_the_limit_of_memory(tmp_path):
    text = tmp_path / "t.txt"
    text.write_text(TWO_DOCUMENTS * 400_000)
    order = train.Order(data=(str(text),), model="ngram", sets={"train.memory": "500M", "model.order": 15})
    assert train.estimate(order)["memory"] == 500_000_000


def test_early_interrupt_says_what_was_kept_and_how_to_continue(corpus, tmp_path, monkeypatch):
    def interrupted(*about):
        yield Stage("count")
        raise KeyboardInterrupt

    monkeypatch.setattr("nextword.tasks.lm.LanguageModelling.fit", interrupted)
    with pytest.raises(
        Stopped, match=r"^stopped during 'count', before there was anything to save; the same"
    ):
        nextword.train(corpus, model="ngram", out=tmp_path / "r")
    assert not (tmp_path / "r").exists()
    monkeypatch.undo()
    nextword.train(corpus, model="ngram", out=tmp_path / "r")
    monkeypatch.setattr("nextword.tasks.lm.LanguageModelling.fit", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"the earlier run in .*r is unchanged"):
        nextword.train(corpus, model="ngram", out=tmp_path / "r", overwrite=True)
    assert nextword.load(tmp_path / "r", verify=True)


def test_count_model_says_how_long_it_takes_only_if_that_is_long(corpus, caplog, monkeypatch):
    nextword.train(corpus, model="ngram")
    assert "training takes" not in caplog.text
    cost = Cost(tokens=1, seconds=300.0, memory=1, disk=1)
    monkeypatch.setattr("nextword.ngram.family.NgramFamily.estimate", lambda *about: cost)
    nextword.train(corpus, model="ngram")
    assert "training takes about 5 minutes" in caplog.text
