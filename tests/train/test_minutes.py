"""What follows from the minutes: sizes by rule, named settings kept, texts cut where the time asks for it."""

import numpy as np
import pytest

from nextword.core.events import Note
from nextword.data.beginning import Beginning
from nextword.data.encode import DataFacts, PackedText, encode
from nextword.data.settings import DataSettings
from nextword.data.source import Source
from nextword.models.ladders import LADDERS
from nextword.models.presets import PRESETS
from nextword.runs.settings import plan
from nextword.tasks import sizes
from nextword.tasks.auto import choose
from nextword.tasks.lm import PreparedText, Texts, in_time
from nextword.text.words import WordTokenizer
from nextword.training.budget.calibrate import calibrate
from nextword.training.budget.clock import Clock
from nextword.training.budget.trial import count_weights, try_steps
from nextword.training.order import Conditions

LINES = "the cat sat on the mat\nthe dog sat on the log\na cat and a dog met\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(LINES * 40)
    return Source.for_training([path], DataSettings())


def returned(events):
    """What a generator returns, and what it told."""
    told = []
    while True:
        try:
            told.append(next(events))
        except StopIteration as end:
            return end.value, told


def test_more_time_allows_more_subwords_and_more_text():
    seconds = (20, 60, 300, 3600)
    assert sorted(sizes.vocabulary(10_000_000, each) for each in seconds) == [
        sizes.vocabulary(10_000_000, each) for each in seconds
    ]
    assert sizes.vocabulary(20_000, 3600) == 512
    assert sizes.readable(600, "bpe") > sizes.readable(60, "bpe") >= 1_000_000
    assert sizes.readable(60, "words") > sizes.readable(60, "bpe")


def test_batches_are_small_where_there_are_few_words():
    few, many = sizes.batch_shape(1e5, 64), sizes.batch_shape(1e8, 64)
    assert few.batch < many.batch <= 128
    assert few.batch >= 4


def test_dropout_grows_with_the_passes_over_the_text():
    shares = [sizes.dropout(epochs) for epochs in (0.1, 2, 5, 12, 50)]
    assert shares == sorted(shares)
    assert shares[0] == 0


def test_large_vocabularies_get_the_adaptive_head():
    assert sizes.head(33_000) == "adaptive"
    assert sizes.head(4_096) == "softmax"


def test_every_rung_is_larger_than_the_one_below_and_is_a_preset():
    for family, rungs in LADDERS.items():
        weights = [count_weights(plan(f"{family}-{rung.name}"), random_text(500)).inner for rung in rungs[:4]]
        assert weights == sorted(weights), family
        assert all(f"{family}-{rung.name}" in PRESETS for rung in rungs)


def random_text(size):
    """A text over so many tokens, of which only the vocabulary matters."""
    tokenizer = WordTokenizer.from_words([f"w{number}" for number in range(size - 3)])
    return PreparedText(PackedText(tokenizer, np.arange(tokenizer.vocab_size, dtype=np.int32), DataFacts()))


def test_inner_weights_leave_out_embedding_and_output_layer():
    for family in LADDERS:
        small, large = (count_weights(plan(f"{family}-nano"), random_text(words)) for words in (100, 1000))
        assert small.inner == large.inner, family
        assert small.all < large.all


def test_nothing_changes_without_minutes(source):
    settings = plan("lstm")
    texts = Texts(source)
    assert in_time(settings, texts, None) == (settings, texts)


def test_what_was_named_stays(source):
    settings = plan("lstm", sets={"text.size": 777, "model.layers": 3})
    chosen, _ = in_time(settings, Texts(source), 60.0)
    assert chosen.text.size == 777
    assert chosen.text.fit_bytes < settings.text.fit_bytes


def test_a_long_text_is_cut_at_a_line_and_says_so(source):
    beginning = Beginning(source, 100)
    data = b"".join(block.data for block in beginning.blocks())
    assert 100 <= len(data) < 130
    assert data.endswith(b"\n")
    assert any("only the first" in note for note in beginning.notes)
    digest = beginning.digest
    assert beginning.read_through() == digest
    assert beginning.size == 100


def test_a_short_text_is_read_whole(source):
    beginning = Beginning(source, 10**9)
    assert b"".join(block.data for block in beginning.blocks()) == (LINES * 40).encode()
    assert not any("only the first" in note for note in beginning.notes)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["lstm", "transformer", "window"])
def test_a_plan_is_chosen_from_real_steps(source, family):
    settings = plan(family, tokenizer="characters", sets={"train.threads": 1, "train.rate": 0.003})
    text, _ = returned(encode(source, settings.text, settings.data))
    chosen, told = returned(calibrate(settings, PreparedText(text), Conditions(Clock(20.0))))
    assert chosen.train.rate == 0.003
    assert chosen.train.batch >= 4
    assert chosen.model.hidden in [rung.settings["model.hidden"] for rung in LADDERS[family]]
    assert any(isinstance(event, Note) and event.message.startswith("plan: ") for event in told)


@pytest.mark.slow
def test_a_trial_times_steps_and_keeps_nothing(source):
    settings = plan("lstm-nano", tokenizer="characters", sets={"train.threads": 1, "train.length": 16})
    text, _ = returned(encode(source, settings.text, settings.data))
    trial = try_steps(settings, PreparedText(text), Conditions(), 0.5)
    assert trial.tokens_per_second > 0
    assert trial.epoch == text.facts.tokens
    assert np.isclose(trial.tokens_per_second * trial.seconds_per_step, trial.tokens_per_step)


def test_auto_is_an_ngram_without_minutes():
    assert choose().model == "ngram-good-turing"
    assert choose(["model.smoothing"]).model == "ngram"


def test_auto_with_minutes_follows_the_settings_named():
    assert choose(["model.order"], 1.0).model == "ngram"
    assert choose(["model.hidden"], 1.0).model == "lstm"
    assert choose(["train.rate"], 1.0).model == "lstm"
    assert choose(["train.seed"], 0.01).model == "ngram-good-turing"


def test_auto_with_minutes_mixes_counts_and_a_network():
    choice = choose((), 1.0)
    assert choice.model == "mixture"
    assert choice.sets["model.alone"] is True
    assert plan(choice.model, sets=choice.sets).family == "mixture"


def test_no_step_is_tried_when_the_time_is_over(source):
    settings = plan("lstm", tokenizer="characters")
    text, _ = returned(encode(source, settings.text, settings.data))
    chosen, told = returned(calibrate(settings, PreparedText(text), Conditions(Clock(1e-3))))
    assert chosen.model.hidden == LADDERS["lstm"][0].settings["model.hidden"]
    assert any(isinstance(event, Note) and "time is over" in event.message for event in told)
