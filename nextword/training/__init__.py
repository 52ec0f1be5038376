"""From settings and text to a saved run.

    plan(model, ...) -> RunSettings          every mistake in settings ends here, before anything is read
    fit(settings, source) -> Iterator[Event] corpus -> tokenizer -> ids -> model; ends with Done(Trained)
    write(trained, folder), load(path)       a run folder, there and back

Import them from their files: ``nextword.runs.settings``, ``.fit``, ``.saved``, ``.estimate``.
"""
