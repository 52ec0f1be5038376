"""``/live``, ``/ready`` and ``/v1/models``."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from nextword.server.answers import answer
from nextword.server.errors import ApiError, documented
from nextword.server.models import Model, Shelf
from nextword.server.schemas import ServedModel, ServedModels

router = APIRouter(tags=["server"])


@router.get("/live", response_model=dict[str, str], responses=documented(403))
async def live() -> Response:
    """Answer as long as the process does; needs no key."""
    return answer({"status": "live"})


@router.get("/ready", response_model=dict[str, str], responses=documented(401, 403, 503))
async def ready(http: Request) -> Response:
    """Answer 200 when models can be asked, and 503 before that and while the server ends."""
    shelf: Shelf = http.app.state.shelf
    if not shelf.is_ready:
        raise ApiError(
            503, "the server is ending" if shelf.is_draining else "no model is there yet", "not_ready"
        )
    return answer({"status": "ready"})


@router.get("/v1/models", response_model=ServedModels, responses=documented(401, 403))
async def models(http: Request) -> Response:
    """List the served runs; a model's id is the name of its folder."""
    shelf: Shelf = http.app.state.shelf
    found = [about(model) for model in await shelf.models()]
    return answer({"object": "list", "data": found, "training": sorted(shelf.expected)})


@router.get("/v1/models/{model}", response_model=ServedModel, responses=documented(401, 403, 404, 422, 503))
async def one_model(http: Request, model: str) -> Response:
    """Tell one served run."""
    shelf: Shelf = http.app.state.shelf
    return answer(about(await shelf.find(model)))


def about(model: Model) -> dict[str, object]:
    """Describe a model."""
    opened = model.opened
    return {
        "id": model.name, "object": "model", "created": model.created, "owned_by": "nextword",
        "task": model.task, "family": opened.settings.family, "about": opened.describe(),
    }  # fmt: skip
