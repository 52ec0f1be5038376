"""A run answers as the interface says: score, next, generate, evaluate, compress, save, load."""

import math

import numpy as np
import pytest

import nextword
from nextword.core.errors import ConfigError, ContextError, DataError, RunError


@pytest.fixture(scope="module")
def run(corpus):
    return nextword.train(corpus, model="ngram", set={"model.order": 3})


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


def test_score_adds_up_and_names_its_tokens(run):
    score = run.score("the students opened their books")
    assert [token.text for token in score.tokens] == ["the", "students", "opened", "their", "books", "</s>"]
    assert score.nll == pytest.approx(-sum(token.logprob for token in score.tokens) / 6)
    assert score.perplexity == pytest.approx(math.exp(score.nll))
    assert score.bits_per_byte > 0
    assert score.logprob == pytest.approx(-6 * score.nll)
    assert "perplexity=" in repr(score)


def test_unknown_word_is_marked_and_costs_its_spelling(run):
    known, unknown = run.score("the students"), run.score("the zebras")
    assert [token.known for token in unknown.tokens] == [True, False, True]
    assert unknown.bits_per_byte > known.bits_per_byte


def test_empty_text_has_no_score(run):
    with pytest.raises(DataError, match="the text is empty"):
        run.score("")


def test_score_is_what_evaluate_measures(run, tmp_path):
    text = "the students read their books"
    (tmp_path / "t.txt").write_text(text)
    report, score = run.evaluate(tmp_path / "t.txt"), run.score(text)
    assert report.nll == pytest.approx(score.nll)
    assert report.bits_per_byte == pytest.approx(score.bits_per_byte)


def test_next_is_a_distribution_over_every_word_but_start(run):
    pairs = run.next("the students")
    assert sum(p for _, p in pairs) == pytest.approx(1, abs=1e-6)
    assert len(pairs) == run.tokenizer.vocab_size - 1
    assert "</s>" in dict(pairs)
    assert "<s>" not in dict(pairs)
    assert [p for _, p in pairs] == sorted((p for _, p in pairs), reverse=True)
    assert pairs.is_probability


def test_next_of_nothing_is_the_beginning_of_a_sequence(run):
    assert run.next("", top=1)[0][0] == "the"


@pytest.mark.parametrize("top", [0, 1, 3, 1000])
def test_top_is_the_head_of_the_whole_distribution(run, top):
    whole = run.next("the")
    assert run.next("the", top=top) == whole[:top]


def test_next_probability_is_the_score_s(run):
    token = run.score("the students opened").tokens[2]
    assert dict(run.next("the students"))["opened"] == pytest.approx(math.exp(token.logprob), rel=1e-6)


def test_stupid_backoff_is_marked_as_a_score_everywhere(corpus):
    run = nextword.train(corpus, model="ngram-stupid")
    assert not run.is_probability
    assert not run.next("the").is_probability
    assert "no probability" in run.next("the")._repr_html_()
    assert "no probability" in repr(run.score("the students"))
    assert run.summary()["is_probability"] is False


def test_mle_says_where_it_has_no_distribution(corpus):
    run = nextword.train(corpus, model="ngram-mle")
    with pytest.raises(ContextError, match="no distribution"):
        run.next("books books books")


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
    with pytest.raises(
        ConfigError, match=r"unknown setting 'generate\.temprature'; did you mean 'generate\.temp"
    ):
        run.generate(temprature=2)
    with pytest.raises(ConfigError, match=r"'generate\.top_k' is -1; it must be 0 or more"):
        run.generate(top_k=-1)
    with pytest.raises(ConfigError, match="unknown decode 'greddy'; did you mean 'greedy'"):
        run.generate(decode="greddy")


def test_wrong_argument_of_train_is_named(corpus):
    with pytest.raises(ConfigError, match="unknown argument 'tokeniser' of train; did you mean 'tokenizer'"):
        nextword.train(corpus, tokeniser="words")


@pytest.mark.parametrize("data", [b"", b"the students\r\n\tread  \n", bytes(range(256)), b"no end"])
def test_compress_gives_any_bytes_back_in_memory_and_saved(run, data, tmp_path):
    coded = run.compress(data)
    assert run.decompress(coded) == data
    assert run.save(tmp_path / "r").decompress(coded) == data  # the same model, so the same fingerprint


def test_two_trainings_of_one_text_have_one_fingerprint(corpus, tmp_path):
    first, second = (nextword.train(corpus, model="ngram", out=tmp_path / name) for name in "ab")
    assert first.fingerprint == second.fingerprint
    assert first.fingerprint != nextword.train(corpus, model="ngram-add").fingerprint


def test_save_refuses_to_replace_unless_told(run, tmp_path):
    run.save(tmp_path / "r")
    with pytest.raises(RunError, match="already holds a run"):
        run.save(tmp_path / "r")
    assert run.save(tmp_path / "r", overwrite=True).path == tmp_path / "r"


def test_export_and_import_keep_the_numbers(run, tmp_path):
    path = nextword.export(run, tmp_path / "m.arpa")
    again = nextword.import_(path, tmp_path / "r")
    assert again.score("the students read").nll == pytest.approx(run.score("the students read").nll, abs=1e-5)
    with pytest.raises(ConfigError, match="unknown export format 'docx'"):
        run.export(tmp_path / "x", "docx")


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


def test_filter_and_rescore_are_functions_too(run, corpus, tmp_path):
    done = nextword.filter(run, corpus, tmp_path / "kept.txt", keep="head:50")
    assert done.kept == len((tmp_path / "kept.txt").read_text().rstrip("\n").split("\n"))
    (tmp_path / "n.tsv").write_text("u\t0\tbooks their opened\nu\t0\tthe students opened their books\n")
    ordered = nextword.rescore(run, tmp_path / "n.tsv", weights=[0, 1])
    assert ordered.lines[0].rstrip().endswith("the students opened their books")


def test_objects_show_themselves_in_notebooks_without_markup_of_the_text(tmp_path):
    (tmp_path / "t.txt").write_text("<script> & \x1b[31m\n" * 3)
    run = nextword.train(tmp_path / "t.txt", model="ngram")
    shown = [run, run.score("<script> &"), run.next("<script>"), run.generate("<script>", seed=1)]
    for each in shown:
        html = each._repr_html_()
        assert "<script>" not in html
        assert "\x1b" not in html


def test_minutes_that_will_hardly_do_are_noted(corpus, caplog):
    nextword.train(corpus, model="ngram", minutes=0.0001)
    assert "more than the 0.0001 minutes" in caplog.text


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


def test_tokenizer_is_a_thing_of_its_own(corpus, tmp_path):
    made = nextword.train_tokenizer(corpus, "characters", out=str(tmp_path / "c.json"))
    assert made.decode(made.encode("books")) == "books"
    assert (tmp_path / "c.json").is_file()


def test_corpora_are_listed():
    assert "sotu" in nextword.list_data()
