"""``/`` and ``/api/…``: the page, and what its screens ask; `api` and `runs` compute it.

The page's files hold nothing secret and need no key; what they ask for does.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response

from nextword.api.opened import Opened
from nextword.api.reasons import reasons
from nextword.api.typed import typed
from nextword.core.contracts import NATS_PER_BIT
from nextword.core.errors import ConfigError, DataError
from nextword.evaluation.lines.records import score_records
from nextword.evaluation.lm.placed import PlacedToken, alternatives, placed, placed_words
from nextword.evaluation.lm.surprise import spelling
from nextword.page import files
from nextword.runs.overview import overview
from nextword.server.answers import answer, to_bytes, while_connected
from nextword.server.body import StrictRoute
from nextword.server.errors import ApiError, documented
from nextword.server.models import Shelf
from nextword.server.requests import answering
from nextword.server.screen_schemas import (
    LinesAnswer,
    LinesQuestion,
    NextAnswer,
    NextQuestion,
    PlaceAnswer,
    PlaceQuestion,
    RunsAnswer,
    SurpriseAnswer,
    SurpriseQuestion,
    WhyAnswer,
    WhyQuestion,
)
from nextword.server.security import FILES
from nextword.store.names import RUNS

T = TypeVar("T")
router = APIRouter(route_class=StrictRoute, tags=["page"])
_ERRORS = documented(400, 401, 403, 404, 408, 413, 415, 422, 429, 503)


@router.get("/", include_in_schema=False)
async def home() -> Response:
    """Return the page."""
    return _file("index.html")


@router.get(FILES + "{name}", include_in_schema=False)
async def file(name: str) -> Response:
    """Return one of the page's files by its name."""
    return _file(name)


def _file(name: str) -> Response:
    found = files().get(name)
    if found is None:
        raise ApiError(404, "the page has no such file", "unknown_file")
    data, kind = found
    return Response(data, media_type=kind, headers={"Cache-Control": "no-cache"})


@router.post("/api/next", response_model=NextAnswer, responses=_ERRORS)
async def next_word(http: Request, asked: NextQuestion) -> Response:
    """Return the most likely next words of a model, or how the word that is being typed may end."""
    return answer(await _ask(http, asked.model, lambda run: _next(run, asked)))


def _next(run: Opened, asked: NextQuestion) -> dict[str, Any]:
    found = typed(run, asked.text, asked.top)
    words = [{"text": word.text, "probability": word.probability} for word in found.words]
    return {
        "model": asked.model, "asks": found.asks, "words": words, "unknown": found.unknown,
        "others": found.others, "part": found.part, "unit": found.unit, "notes": list(found.notes),
    }  # fmt: skip


@router.post("/api/why", response_model=WhyAnswer, responses=_ERRORS)
async def why(http: Request, asked: WhyQuestion) -> Response:
    """Return where the probability of a word comes from: counts and backoff, members, attention."""
    return answer(await _ask(http, asked.model, lambda run: reasons(run, asked.text, asked.word).to_json()))


@router.post("/api/surprise", response_model=SurpriseAnswer, responses=_ERRORS)
async def surprise(http: Request, asked: SurpriseQuestion) -> Response:
    """Return the surprise of every token and every word of a text."""
    return answer(await _ask(http, asked.model, lambda run: _surprise(run, asked)))


def _surprise(run: Opened, asked: SurpriseQuestion) -> dict[str, Any]:
    found = placed(run.model, run.tokenizer, asked.text)
    return {
        "model": asked.model,
        "tokens": [_token(each) for each in found.tokens],
        "words": [_token(each) for each in placed_words(run.model, run.tokenizer, asked.text)],
        "predictions": found.predictions,
        "unknown": found.unknown,
        "perplexity": _finite(found.perplexity),
        "bits_per_byte": _finite(found.bits_per_byte),
    }


def _token(token: PlacedToken) -> dict[str, Any]:
    return asdict(token) | {"bits": _finite(token.bits)}


@router.post("/api/alternatives", response_model=PlaceAnswer, responses=_ERRORS)
async def others(http: Request, asked: PlaceQuestion) -> Response:
    """Return what else could stand at one place of a text."""
    found = await _ask(
        http,
        asked.model,
        lambda run: alternatives(run.model, run.tokenizer, asked.text, asked.number, asked.top),
    )
    return answer(asdict(found))


@router.post("/api/lines", response_model=LinesAnswer, responses=_ERRORS)
async def lines(http: Request, asked: LinesQuestion) -> Response:
    """Score lines, each by itself, as `nextword score` does."""
    return answer(await _ask(http, asked.model, lambda run: _lines(run, asked)))


def _lines(run: Opened, asked: LinesQuestion) -> dict[str, Any]:
    texts = [line.encode() for line in asked.lines]
    found = score_records(run.model, run.tokenizer, texts)
    rows = []
    for text, logprob, tokens, unknown in zip(
        texts, found.logprob.tolist(), found.tokens.tolist(), found.unknown.tolist(), strict=True
    ):
        bits = -logprob / NATS_PER_BIT if tokens else None
        spelled = spelling(run.tokenizer, text.decode()) if unknown else 0.0  # unknown words, as in `eval`
        each = None if bits is None else _finite((bits + spelled) / max(1, len(text)))
        rows.append({"bits": _finite(bits), "tokens": tokens, "unknown": unknown, "bits_per_byte": each})
    return {"model": asked.model, "lines": rows}


@router.get("/api/runs", response_model=RunsAnswer, responses=documented(401, 403))
async def runs(http: Request) -> Response:
    """Return all runs beside the served ones, with their curves, and how long those under way still take.

    Ask with If-None-Match: while nothing has changed, the answer is an empty 304.
    """
    shelf: Shelf = http.app.state.shelf
    folders = sorted({path.parent for path in shelf.folders.values()}) or [Path(RUNS)]
    found = await asyncio.to_thread(_runs, folders, {name: shelf.folders[name] for name in shelf.names})
    data = to_bytes(found)
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if http.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type="application/json", headers=headers)


def _runs(folders: list[Path], served: dict[str, Path]) -> dict[str, Any]:
    """Collect the runs; ``place`` decides the colour of each: a served one has the same on every screen.

    Runs of one name in two folders are called by their folders, too, except for the served one.
    """
    found = [(folder, each.to_json()) for folder in folders for each in overview(folder)]
    counts = Counter(row["name"] for _, row in found)
    rows = []
    for folder, row in found:
        name = row["name"]
        is_served = served.get(name) == folder / name
        shown = name if is_served or counts[name] == 1 else f"{folder.name}/{name}"
        rows.append(row | {"name": shown, "folder": folder.name, "served": is_served})
    names = dict.fromkeys([*served, *(row["name"] for row in rows)])
    places = {name: place for place, name in enumerate(names)}
    return {
        "folders": [folder.name for folder in folders],
        "runs": [row | {"place": places[row["name"]]} for row in rows],
    }


async def _ask(http: Request, name: str, compute: Callable[[Opened], T]) -> T:
    """Compute with a model in its own thread; what it cannot do is an answer, too."""
    shelf: Shelf = http.app.state.shelf
    model = await shelf.find(name)
    model.check_text()
    with answering():
        try:
            return await while_connected(http, model.worker.call(lambda: compute(model.opened)))
        except (ConfigError, DataError) as error:  # a sentence for the reader of the page
            raise ApiError(400, str(error), "not_possible", "text") from error


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
