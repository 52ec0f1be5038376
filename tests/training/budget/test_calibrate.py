"""The sizes of a network are chosen from real steps, or by rule where there is no time to try."""

import pytest
from event_streams import notes_of, until_return

from nextword.data.encode import encode
from nextword.models.ladders import LADDERS
from nextword.runs.settings import plan
from nextword.tasks.lm import PreparedText
from nextword.training.budget.calibrate import calibrate
from nextword.training.budget.clock import Clock
from nextword.training.order import Conditions


@pytest.mark.slow
@pytest.mark.parametrize("family", ["lstm", "transformer", "window"])
def test_a_plan_is_chosen_from_real_steps(meetings, family):
    settings = plan(family, tokenizer="characters", sets={"train.threads": 1, "train.rate": 0.003})
    text, _ = until_return(encode(meetings, settings.text, settings.data))
    chosen, told = until_return(calibrate(settings, PreparedText(text), Conditions(Clock(20.0))))
    assert chosen.train.rate == 0.003
    assert chosen.train.batch >= 4
    assert chosen.model.hidden in [rung.settings["model.hidden"] for rung in LADDERS[family]]
    assert any(note.startswith("plan: ") for note in notes_of(told))


def test_no_step_is_tried_when_the_time_is_over(meetings):
    settings = plan("lstm", tokenizer="characters")
    text, _ = until_return(encode(meetings, settings.text, settings.data))
    chosen, told = until_return(calibrate(settings, PreparedText(text), Conditions(Clock(1e-3))))
    assert chosen.model.hidden == LADDERS["lstm"][0].settings["model.hidden"]
    assert any("the time is up" in note for note in notes_of(told))
