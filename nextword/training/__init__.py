"""Train a model: from settings and examples to a trained model.

settings_of(order) -> RunSettings           check every setting before anything is read     order.py
fit(settings, examples) -> Iterator[Event]  the whole training run; ends with Done(Trained)  fit.py
loop.fit(job) -> Iterator[Event]            the training loop of a network                  loop.py
"""
