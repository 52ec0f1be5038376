"""From settings and text to a saved run.

    plan(model, ...) -> RunSettings          every mistake in settings ends here, before anything is read
    fit(settings, data) -> Iterator[Event]   corpus -> tokenizer -> ids -> model; the last event is Done(Trained)
    train(settings, data, out) -> Iterator[Event]     the same, into a run folder
    load(path) -> Trained                    a saved run

Import them from their files: ``nextword.train.settings``, ``.fit``, ``.saved``, ``.estimate``.
"""
