"""How neural models learn: one loop, each idea in its own file. torch is needed from here on.

loop.fit(job) -> Iterator[Event]   Stage, Step, Valid, Measure, Note; ends with Done(Outcome)
state.TrainingState                everything that decides what comes next, as tensors and JSON
"""
