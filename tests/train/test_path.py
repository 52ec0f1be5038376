"""The path from a text to a run: read as often as needed, told as events, the same however it is cut."""

from dataclasses import astuple

import numpy as np
import pytest

from nextword.api import train
from nextword.core import catalog
from nextword.core.errors import ConfigError, DamagedError
from nextword.core.events import Done, Measure, Progress, Stage
from nextword.data.encode import encode
from nextword.data.source import Source
from nextword.runs import saved
from nextword.runs.facts import Facts, from_json
from nextword.runs.settings import from_toml, plan
from nextword.store.writing import new_run
from nextword.tasks.lm import Texts
from nextword.training.fit import fit

TEXT = "the cat sat on the mat\nthe dog sat on the log\n\na cat and a dog\n" * 20


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(TEXT)
    return path


def last(events):
    *_, done = events
    assert isinstance(done, Done)
    return done.result


def run_encode(settings, source, scratch=None):
    def ending():
        yield Done((yield from encode(source, settings.text, settings.data, scratch)))

    return last(ending())


def test_fit_tells_stages_progress_and_ends_with_what_was_made(text):
    settings = plan("ngram", sets={"model.order": 2})
    source = Source.for_training([text], settings.data)
    events = list(fit(settings, Texts(source, Source.for_reading([text], settings.data))))
    assert isinstance(events[0], Stage)
    assert any(isinstance(event, Progress) and event.done == len(TEXT) for event in events)
    assert any(isinstance(event, Measure) and "valid_perplexity" in event.values for event in events)
    made = events[-1].result
    assert made.facts.data.bytes == len(TEXT)
    assert len(made.facts.data.sha256) == 64
    assert made.facts.data.tokens == len(TEXT.split()) + TEXT.count("\n")


@pytest.mark.parametrize("tokenizer", ["words", "characters", "bytes", "bpe", "unigram"])
def test_ids_on_disk_are_the_ids_in_memory(tokenizer, text, tmp_path):
    settings = plan(
        "ngram", tokenizer=tokenizer, sets={"text.size": 300} if tokenizer in ("bpe", "unigram") else {}
    )
    source = Source.for_training([text], settings.data)
    first = run_encode(settings, source)
    second = run_encode(settings, source, tmp_path)
    assert np.array_equal(first.ids, second.ids)
    assert first.facts == second.facts
    assert first.tokenizer.decode(i for i in first.ids if i > 2).split() == TEXT.split()


def test_ids_of_subwords_are_found_again_by_content(text, tmp_path, monkeypatch):
    monkeypatch.setenv("NEXTWORD_CACHE", str(tmp_path / "cache"))
    settings = plan("ngram", tokenizer="bpe", sets={"text.size": 280})
    first = run_encode(settings, Source.for_training([text], settings.data))
    kept = list((tmp_path / "cache" / "ids").iterdir())
    assert len(kept) == 1
    again = run_encode(settings, Source.for_training([text], settings.data))
    assert np.array_equal(first.ids, again.ids)
    assert list((tmp_path / "cache" / "ids").iterdir()) == kept


@pytest.mark.parametrize("tokenizer", ["characters", "bpe"])
def test_standard_input_is_kept_for_a_second_pass(tokenizer, text, monkeypatch):
    settings = plan("ngram", tokenizer=tokenizer, sets={"text.size": 280})
    with open(text) as file:
        monkeypatch.setattr("sys.stdin", file)
        piped = run_encode(settings, Source.for_training(["-"], settings.data))
    assert np.array_equal(piped.ids, run_encode(settings, Source.for_training([text], settings.data)).ids)


def test_unit_can_be_set_against_the_tokenizer_s_own(text):
    for tokenizer, unit, sequences in (("words", "document", 1), ("characters", "line", TEXT.count("\n"))):
        settings = plan("ngram", tokenizer=tokenizer, sets={"data.unit": unit})
        found = run_encode(settings, Source.for_training([text], settings.data))
        assert (found.tokenizer.unit, found.facts.sequences) == (unit, sequences)


def test_saved_run_gives_back_settings_facts_metrics_and_numbers(text, tmp_path):
    settings = plan("ngram-absolute", sets={"model.order": 3})
    made = last(fit(settings, Texts(Source.for_training([text], settings.data))))
    with new_run(tmp_path / "r") as folder:
        saved.write(made, folder)
    found = saved.load(tmp_path / "r", verify=True)
    assert found.settings == made.settings
    assert found.facts == made.facts
    assert found.metrics == made.metrics
    ids = np.array([[3, 4, 5, 2]])
    assert np.array_equal(found.model.score(ids, np.array([4]))[0], made.model.score(ids, np.array([4]))[0])


@pytest.mark.parametrize(
    ("text_of_config", "words"),
    [
        ("x = ", "not valid TOML"),
        ("name = 3\n", "does not name its family"),
        ('family = "ngrm"\n', "unknown model 'ngrm'"),
    ],
)
def test_configuration_that_cannot_be_is_a_damaged_run(text_of_config, words, text, tmp_path):
    settings = plan("ngram")
    made = last(fit(settings, Texts(Source.for_training([text], settings.data))))
    with new_run(tmp_path / "r") as folder:
        saved.write(made, folder)
        (folder.path / "config.toml").write_text(text_of_config)
        folder._records.pop("config.toml")  # so that the manifest fits the file
    with pytest.raises(DamagedError, match=words):
        saved.load(tmp_path / "r")


def test_configuration_is_written_complete_and_read_back():
    settings = plan("ngram-katz", tokenizer="characters", seed=3, sets={"train.memory": "1G"})
    assert from_toml(settings.to_toml(), "config.toml") == settings
    with pytest.raises(ConfigError, match="unknown task 'speech'"):
        plan("ngram", task="speech")


def test_facts_of_another_version_are_read_as_far_as_they_are_known():
    assert from_json({"seed": 3, "new": 1, "data": {"bytes": 5, "novel": 2, "names": ["a"]}}).data.bytes == 5
    assert from_json("nonsense") == Facts()


def test_estimate_grows_with_the_text():
    family, settings = catalog.find("model", "ngram"), plan("ngram").model
    small, large = (family.estimate(settings, size, "words") for size in (10**6, 10**9))
    assert all(low < high for low, high in zip(astuple(small), astuple(large), strict=True))


def test_estimate_keeps_to_the_limit_of_memory(text):
    text.write_text(TEXT * 20_000)
    order = train.Order(data=(str(text),), model="ngram", sets={"train.memory": "500M", "model.order": 15})
    assert train.estimate(order)["memory"] == 500_000_000
