"""Which tokenizer a mixture takes: the one whose count models predict held-out text best."""

import pytest
from event_streams import notes_of, until_return

from nextword.data.settings import DataSettings
from nextword.data.source import Source
from nextword.runs.settings import plan
from nextword.tasks.lm import Texts
from nextword.training.clock import Clock
from nextword.training.mixtures.mixture import _open_settings, part_settings
from nextword.training.mixtures.tokenizers import TokenizerCandidate, choose_tokenizer
from nextword.training.order import Conditions

TEXT = "".join(f"{number} and {number + 1} make {2 * number + 1}.\n" for number in range(400))
COUNTS = {"model.models": ("ngram",)}


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "train.txt").write_text(TEXT)
    (tmp_path / "valid.txt").write_text(
        "".join(f"{n} and {n + 1} make {2 * n + 1}.\n" for n in range(500, 540))
    )
    return (
        Source.for_training([tmp_path / "train.txt"], DataSettings()),
        Source.for_reading([tmp_path / "valid.txt"], DataSettings()),
    )


def test_the_tokenizer_that_predicts_best_is_taken_and_told(texts):
    drafts = [
        TokenizerCandidate(plan("mixture", tokenizer=name, sets=COUNTS), *texts)
        for name in ("characters", "bpe")
    ]
    each = [until_return(choose_tokenizer([draft], part_settings))[0].bits_per_byte() for draft in drafts]
    chosen, events = until_return(choose_tokenizer(drafts, part_settings))
    assert chosen.bits_per_byte() == min(each) < max(each)
    assert any(chosen.text.tokenizer.name in note and f"{min(each):.3f}" in note for note in notes_of(events))


def test_letters_get_longer_n_grams_unless_the_order_is_named():
    chosen = part_settings(plan("mixture", tokenizer="characters", sets=COUNTS), 1_000_000)
    assert [part.model.order for part in chosen] == [8]
    words = part_settings(plan("mixture", tokenizer="words", sets=COUNTS), 1_000_000)
    assert [part.model.order for part in words] == [5]


def test_a_named_tokenizer_stays(texts):
    conditions = Conditions(Clock(60.0))
    assert len(_open_settings(plan("mixture"), Texts(*texts), conditions)) == 2
    (only,) = _open_settings(plan("mixture", tokenizer="bpe"), Texts(*texts), conditions)
    assert only.text.tokenizer == "bpe"
