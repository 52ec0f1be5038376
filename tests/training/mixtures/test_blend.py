"""A mixture trained from text: its parts learn, held-out text weighs them, the run stands alone."""

import gc
import time

import pytest
from event_streams import result_of
from small_texts import MEETING

from nextword.core.contracts import Block
from nextword.core.errors import ConfigError
from nextword.data.settings import DataSettings
from nextword.data.source import Source
from nextword.data.split import hold_out
from nextword.evaluation.lm.perplexity import evaluate
from nextword.mixtures.mixture import Mixture
from nextword.runs import saved
from nextword.runs.settings import plan
from nextword.store.writing import new_run
from nextword.tasks.lm import Texts
from nextword.training.clock import Clock
from nextword.training.fit import fit
from nextword.training.mixtures.mixture import part_settings
from nextword.training.order import Conditions

SMALL = {"model.models": ("ngram", "lstm-nano")}


def sources(tmp_path):
    (tmp_path / "train.txt").write_text(MEETING * 60)
    (tmp_path / "valid.txt").write_text("the dog and a cat sat\na cat met the dog on the mat\n" * 5)
    return (
        Source.for_training([tmp_path / "train.txt"], DataSettings()),
        Source.for_reading([tmp_path / "valid.txt"], DataSettings()),
    )


def test_parts_share_text_and_seed_and_counts_come_first():
    settings = plan("mixture", tokenizer="words", seed=5, sets={"model.models": ("lstm", "ngram")})
    parts = part_settings(settings)
    assert [part.name for part in parts] == ["ngram", "lstm"]
    assert all(part.text == settings.text and part.train.seed == 5 for part in parts)


def test_a_mixture_without_held_out_text_is_refused(tmp_path):
    source, _ = sources(tmp_path)
    with pytest.raises(ConfigError, match="weights of a mixture need held-out text"):
        list(fit(plan("mixture"), Texts(source)))


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", ["words", "characters"])
def test_a_mixture_is_at_least_as_good_as_its_parts_and_is_saved_whole(tmp_path, tokenizer):
    source, valid = sources(tmp_path)
    settings = plan("mixture", tokenizer=tokenizer, sets=SMALL)
    began = time.monotonic()
    with new_run(tmp_path / "run") as folder:
        saved.write(result_of(fit(settings, Texts(source, valid), folder, Conditions(Clock(8.0)))), folder)
    assert time.monotonic() - began < 20
    found = saved.load(tmp_path / "run", verify=True)
    assert isinstance(found.model, Mixture)
    assert found.settings.model.runs == ("ngram", "lstm-nano")
    mixed = evaluate(found.model, found.tokenizer, valid.blocks()).nll
    for part in found.model.models:
        assert mixed <= evaluate(part, found.tokenizer, valid.blocks()).nll + 1e-3
    gc.collect()
    assert not list(tmp_path.glob(".nextword-*"))


def test_a_part_that_does_as_well_alone_is_kept_alone(tmp_path):
    source, valid = sources(tmp_path)
    sets = {"model.alone": True, "model.models": ("ngram", "ngram")}
    made = result_of(fit(plan("mixture", tokenizer="words", sets=sets), Texts(source, valid)))
    assert made.settings.family == "ngram"


def test_count_models_learn_the_held_out_end_of_the_text_once_they_are_weighed(tmp_path):
    (tmp_path / "text.txt").write_text(MEETING * 60 + "some log ate the sad sea\n" * 9)
    source, valid = hold_out([tmp_path / "text.txt"], DataSettings())
    sets = {"model.alone": True, "model.models": ("ngram", "ngram")}
    settings = plan("mixture", tokenizer="characters", sets=sets)
    made = result_of(fit(settings, Texts(source, valid)))
    counts = plan("ngram", tokenizer="characters", sets={"model.order": 8})
    without = result_of(fit(counts, Texts(source)))
    whole = Source.for_training([tmp_path / "text.txt"], DataSettings())
    alone = result_of(fit(counts, Texts(whole)))
    assert made.facts.data.words == alone.facts.data.words
    assert news(made) < 0.5 * news(without)


def news(trained):
    """Nats per letter of what only the end of the text says."""
    lines = [Block(b"some log ate the sad sea\n", True, "", 1)]
    return evaluate(trained.model, trained.tokenizer, lines).nll
