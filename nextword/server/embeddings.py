"""``/v1/embeddings``: the mean of a network's features over a text, as a vector of length 1."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Request, Response

from nextword.core.contracts import LanguageModel, Reader
from nextword.models.distributions import as_numpy
from nextword.server.answers import answer, beside, body_size, while_connected
from nextword.server.body import StrictRoute
from nextword.server.errors import ApiError, documented
from nextword.server.models import Shelf
from nextword.server.prompts import prompts_of
from nextword.server.requests import ERRORS, answering
from nextword.server.schemas import EmbeddingRequest, Embeddings

router = APIRouter(route_class=StrictRoute, tags=["text"])
_TOGETHER = 8192  # tokens that are read at once
Vector = npt.NDArray[np.float32]


@router.post("/v1/embeddings", response_model=Embeddings, responses=documented(*ERRORS))
async def embeddings(http: Request, asked: EmbeddingRequest) -> Response:
    """Turn texts into vectors; count models have none."""
    shelf: Shelf = http.app.state.shelf
    found = await shelf.find(asked.model)
    found.check_text()
    model = found.opened.model
    if not isinstance(model, Reader):
        raise ApiError(400, "this model has no vectors: it counts; ask a network", "no_vectors", "model")
    prompts = await beside(body_size(http), lambda: prompts_of(asked.input, found.tokenizer))
    if not all(prompt.ids for prompt in prompts):
        raise ApiError(422, "an input is empty", "invalid_input", "input")
    with answering():
        work = found.worker.call(lambda: vectors(model, [prompt.ids for prompt in prompts]))
        made = await while_connected(http, work)
    count = sum(prompt.count for prompt in prompts)
    data = [
        {"object": "embedding", "index": i, "embedding": _written(each, asked.encoding_format)}
        for i, each in enumerate(made)
    ]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return answer({"object": "list", "data": data, "model": found.name, "usage": usage})


def vectors(model: LanguageModel, texts: Sequence[tuple[int, ...]]) -> list[Vector]:
    """Return the mean of the features after each token of each text, scaled to length 1."""
    return [_vector(model, ids) for ids in texts]


def _vector(model: Any, ids: Sequence[int]) -> Vector:
    state, total = model.start(1), 0.0
    for piece in _pieces(ids):
        before_1TD, state = model.read(np.array([piece]), np.array([len(piece)]), state)
        inner_TD = as_numpy(before_1TD, np.float64)[0][1:]  # the first is the feature before the piece
        total = total + inner_TD.sum(axis=0) + as_numpy(state.feature_BD, np.float64)[0]
    mean_D = np.asarray(total) / len(ids)
    length = float(np.linalg.norm(mean_D))
    return np.asarray(mean_D / (length or 1.0), dtype=np.float32)


def _pieces(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[first : first + _TOGETHER] for first in range(0, len(ids), _TOGETHER))


def _written(vector: Vector, form: str) -> list[float] | str:
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    return [float(each) for each in vector]
