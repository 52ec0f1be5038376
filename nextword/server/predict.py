"""``/v1/predict``: tags, classes or translations, through the predictor of the run's task."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from nextword.api.predict import JSON, predictor_of
from nextword.core.errors import ConfigError, DataError
from nextword.core.task import PredictOptions
from nextword.server.answers import answer, while_connected
from nextword.server.body import StrictRoute
from nextword.server.errors import ApiError, documented
from nextword.server.models import Model, Shelf
from nextword.server.requests import ERRORS, answering
from nextword.server.schemas import Predictions, PredictRequest

router = APIRouter(route_class=StrictRoute, tags=["labels"])


@router.post("/v1/predict", response_model=Predictions, responses=documented(*ERRORS))
async def predict(http: Request, asked: PredictRequest) -> Response:
    """Predict for one input or several; the objects are those of `nextword predict --json`."""
    shelf: Shelf = http.app.state.shelf
    model = await shelf.find(asked.model)
    if model.is_language_model:
        raise ApiError(400, "this run is a language model; ask /v1/completions", "not_a_predictor", "model")
    inputs = [asked.input] if isinstance(asked.input, str) else list(asked.input)
    with answering():
        work = model.worker.call(lambda: predictions(model, inputs, asked.pretokenized))
        made = await while_connected(http, work)
    return answer({"model": model.name, "task": model.task, "data": made})


def predictions(model: Model, inputs: Sequence[str], pretokenized: bool) -> list[dict[str, Any]]:
    """Predict in the thread of the model."""
    try:
        predictor = predictor_of(model.opened, PredictOptions(JSON, pretokenized))
        return [json.loads(json.dumps(dict(each.values))) for each in predictor.predict(inputs)]
    except (ConfigError, DataError) as error:
        said = str(error)
        raise ApiError(
            400, said if os.sep not in said else "the run cannot predict this", "not_possible"
        ) from error
