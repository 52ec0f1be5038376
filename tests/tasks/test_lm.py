"""What the minutes change for a language model: the text and the settings nobody named."""

from nextword.runs.settings import plan
from nextword.tasks.lm import Texts, limit_to_time


def test_nothing_changes_without_minutes(meetings):
    settings = plan("lstm")
    texts = Texts(meetings)
    assert limit_to_time(settings, texts, None) == (settings, texts)


def test_what_was_named_stays(meetings):
    settings = plan("lstm", sets={"text.size": 777, "model.layers": 3})
    chosen, _ = limit_to_time(settings, Texts(meetings), 60.0)
    assert chosen.text.size == 777
    assert chosen.text.fit_bytes < settings.text.fit_bytes
