"""What comes next: the distribution over the next token after a text."""

from __future__ import annotations

import numpy as np

from nextword.api.opened import Name, Opened, language_model
from nextword.api.results import Next
from nextword.core.contracts import START
from nextword.models.distributions import as_numpy, without_nan


def next_tokens(run: Opened | Name, context: str = "", top: int | None = None) -> Next:
    """Predict the next token: pairs (text, probability), END as ``</s>``; ``top=None`` gives every token."""
    found = language_model(run)
    ids = as_numpy(found.tokenizer.encode(context), np.int64)
    state = found.model.start(1)
    if len(ids):
        state = found.model.score(ids[None], np.array([len(ids)]), state)[1]
    p_V = np.exp(without_nan(as_numpy(found.model.next(state), np.float64)[0]))
    p_V[START] = -1.0  # sorts last
    count = len(p_V) - 1 if top is None else min(max(0, top), len(p_V) - 1)
    likely = np.argpartition(-p_V, count - 1)[:count] if 0 < count < len(p_V) - 1 else np.arange(len(p_V))
    order = likely[np.lexsort((likely, -p_V[likely]))][:count]
    return Next([(found.tokenizer.piece(int(i)), float(p_V[i])) for i in order], found.is_probability)
