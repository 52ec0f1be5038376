"""``/tokenize``, ``/detokenize``, ``/tokenizer_info``: for clients that have no tokenizer of their own."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from nextword.core.contracts import END, SPECIALS, START, UNKNOWN
from nextword.server.answers import answer, beside
from nextword.server.body import StrictRoute
from nextword.server.errors import ApiError, documented
from nextword.server.models import Model, Shelf
from nextword.server.prompts import from_ids
from nextword.server.schemas import Detokenized, DetokenizeRequest, TokenizeRequest, TokenizerInfo, Tokens

router = APIRouter(route_class=StrictRoute, tags=["tokens"])
_ERRORS = (400, 401, 403, 404, 408, 413, 415, 422, 503)
_EXACT = {SPECIALS[START]: START, SPECIALS[END]: END}


@router.post("/tokenize", response_model=Tokens, responses=documented(*_ERRORS))
async def tokenize(http: Request, asked: TokenizeRequest) -> Response:
    """Turn a text into ids; symbols such as </s> inside a text are text, the symbol alone is the symbol."""
    model = await _model(http, asked.model)
    exact = _EXACT.get(asked.prompt)
    found = await beside(len(asked.prompt), lambda: model.tokenizer.encode(asked.prompt))
    ids = [exact] if exact is not None else list(map(int, found))
    if asked.add_special_tokens and exact is None:
        ids = [START, *ids]
    texts = {"token_strs": [model.tokenizer.piece(each) for each in ids]} if asked.return_token_strs else {}
    return answer({"tokens": ids, "count": len(ids), "max_model_len": None, **texts})


@router.post("/detokenize", response_model=Detokenized, responses=documented(*_ERRORS))
async def detokenize(http: Request, asked: DetokenizeRequest) -> Response:
    """Turn ids into text."""
    model = await _model(http, asked.model)
    return answer({"prompt": from_ids(asked.tokens, model.tokenizer).text})


@router.get(
    "/tokenizer_info", response_model=TokenizerInfo, responses=documented(400, 401, 403, 404, 422, 503)
)
async def tokenizer_info(http: Request, model: str | None = None) -> Response:
    """Tell the special tokens, as clients with a remote tokenizer ask for them."""
    found = await _model(http, model)
    tokenizer = found.tokenizer
    return answer({
        "tokenizer_class": tokenizer.name, "vocab_size": tokenizer.vocab_size, "bos_token": SPECIALS[START],
        "eos_token": SPECIALS[END], "unk_token": SPECIALS[UNKNOWN], "pad_token": None, "chat_template": None,
        "unit": tokenizer.unit,
    })  # fmt: skip


async def _model(http: Request, name: str | None) -> Model:
    """Return the model that is named; without a name the only one, or the first that has a tokenizer."""
    shelf: Shelf = http.app.state.shelf
    if name is not None:
        model = await shelf.find(name)
        if not model.is_language_model:
            model.check_text()
        return model
    found = [model for model in await shelf.models() if model.is_language_model]
    if not found:
        raise ApiError(404, "no language model is served", "model_not_found", "model")
    return found[0]
