"""The path from a text to a run: read as often as needed, told as events, the same however it is cut."""

from small_texts import TWO_DOCUMENTS

from nextword.core.events import Measure, Progress, Stage
from nextword.data.source import Source
from nextword.runs.settings import plan
from nextword.tasks.lm import Texts
from nextword.training.fit import fit

TEXT = TWO_DOCUMENTS * 20


def test_fit_tells_stages_progress_and_ends_with_what_was_made(two_documents):
    settings = plan("ngram", sets={"model.order": 2})
    source = Source.for_training([two_documents], settings.data)
    events = list(fit(settings, Texts(source, Source.for_reading([two_documents], settings.data))))
    assert isinstance(events[0], Stage)
    assert any(isinstance(event, Progress) and event.done == len(TEXT) for event in events)
    assert any(isinstance(event, Measure) and "valid_perplexity" in event.values for event in events)
    made = events[-1].result
    assert made.facts.data.bytes == len(TEXT)
    assert len(made.facts.data.sha256) == 64
    assert made.facts.data.tokens == len(TEXT.split()) + TEXT.count("\n")
