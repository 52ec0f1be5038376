"""Events run to the end: the result comes back, and the rest goes to whoever watches."""

from nextword.core.events import Done, Note, Stage, finish, result_of

EVENTS = [Stage("count"), Note("so far so good"), Done(7)]


def test_result_is_that_of_the_last_event():
    assert result_of(EVENTS) == 7
    assert result_of([Stage("count")]) is None


def test_watcher_gets_every_event_but_the_last():
    seen = []
    result_of(iter(EVENTS), seen.append)
    assert seen == EVENTS[:2]


def test_finish_writes_notes_to_the_log(caplog):
    assert finish(EVENTS) == 7
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("nextword", "so far so good")
    ]
