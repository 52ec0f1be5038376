"""A run as an object: saved, fingerprinted, shown, and taken by every verb."""

import pytest

import nextword
from nextword.core.errors import RunError


def test_stupid_backoff_is_marked_as_a_score_everywhere(corpus):
    run = nextword.train(corpus, model="ngram-stupid")
    assert not run.is_probability
    assert not run.next("the").is_probability
    assert "not a probability" in run.next("the")._repr_html_()
    assert "not probabilities" in repr(run.score("the students"))
    assert run.summary()["is_probability"] is False


def test_two_trainings_of_one_text_have_one_fingerprint(corpus, tmp_path):
    first, second = (nextword.train(corpus, model="ngram", out=tmp_path / name) for name in "ab")
    assert first.fingerprint == second.fingerprint
    assert first.fingerprint != nextword.train(corpus, model="ngram-add").fingerprint


def test_save_refuses_to_replace_unless_told(run, tmp_path):
    run.save(tmp_path / "r")
    with pytest.raises(RunError, match="already holds a run"):
        run.save(tmp_path / "r")
    assert run.save(tmp_path / "r", overwrite=True).path == tmp_path / "r"


def test_characters_and_bytes_agree_about_the_text(corpus):
    for name in ("characters", "bytes"):
        run = nextword.train(corpus, model="ngram", tokenizer=name)
        report = run.evaluate(corpus)
        assert report.bytes == corpus.stat().st_size
        assert report.lossless


def test_verbs_take_a_run_or_its_name(run, corpus, tmp_path):
    saved = run.save(tmp_path / "r")
    assert nextword.score(saved, "the students").nll == nextword.score(tmp_path / "r", "the students").nll
    assert nextword.evaluate(tmp_path / "r", corpus).nll == nextword.evaluate(run, corpus).nll
    assert (
        nextword.decompress(saved, nextword.compress(tmp_path / "r", b"the students\n")) == b"the students\n"
    )
    assert nextword.generate(saved, "the", seed=1) == run.generate("the", seed=1)


def test_objects_show_themselves_in_notebooks_without_markup_of_the_text(tmp_path):
    (tmp_path / "t.txt").write_text("<script> & \x1b[31m\n" * 3)
    run = nextword.train(tmp_path / "t.txt", model="ngram")
    shown = [run, run.score("<script> &"), run.next("<script>"), run.generate("<script>", seed=1)]
    for each in shown:
        html = each._repr_html_()
        assert "<script>" not in html
        assert "\x1b" not in html
