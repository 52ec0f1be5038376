"""``generate``: continue a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from nextword.api.opened import Name, Opened, language_model
from nextword.api.results import Text
from nextword.core import catalog, config
from nextword.decode.generate import Generated, collect
from nextword.decode.generate import generate as tokens_of
from nextword.decode.settings import DecodeSettings

_GROUP = "generate"


def settings(asked: Mapping[str, Any], sets: Iterable[str] = ()) -> DecodeSettings:
    """Check the settings and draw a seed if none is given; ``sets`` are ``key=value`` as typed."""
    values = {**asked, **config.parse_sets(sets)}
    dotted = {f"{_GROUP}.{key.removeprefix(_GROUP + '.')}": value for key, value in values.items()}
    built = cast(DecodeSettings, config.build({_GROUP: DecodeSettings}, dotted)[_GROUP])
    catalog.find_path("decode", built.decode)
    return built.seeded()


def generate(run: Opened | Name, prompt: str = "", **asked: Any) -> Text | list[Text]:
    """Continue a prompt; return it with its continuation, or a list of several texts."""
    chosen = settings(asked)
    texts = [_text(prompt, found, chosen) for found in collect(_tokens(run, prompt, chosen))]
    return texts[0] if len(texts) == 1 else texts


def stream(run: Opened | Name, prompt: str, chosen: DecodeSettings) -> Iterator[str]:
    """Yield prompt and continuation as they are generated, each text followed by a newline."""
    if (
        chosen.samples > 1 or chosen.n_best > 1 or chosen.decode == "beam"
    ):  # rows come interleaved: wait for each
        for found in collect(_tokens(run, prompt, chosen)):
            yield prompt + found.text + "\n"
        return
    yield prompt
    for token in _tokens(run, prompt, chosen):
        yield token.text
    yield "\n"


def as_json(run: Opened | Name, prompt: str, chosen: DecodeSettings) -> dict[str, Any]:
    """Collect what `--json` prints."""
    texts = [_text(prompt, found, chosen) for found in collect(_tokens(run, prompt, chosen))]
    rows = [{"text": str(t), "logprob": t.logprob, "tokens": t.tokens, "reason": t.reason} for t in texts]
    return {"prompt": prompt, "decode": chosen.decode, "seed": _seed(chosen), "texts": rows}


def _tokens(run: Opened | Name, prompt: str, chosen: DecodeSettings) -> Iterator[Any]:
    found = language_model(run, forward=True)
    ids = [int(i) for i in found.tokenizer.encode(prompt)]
    return tokens_of(found.model, [ids], chosen, found.tokenizer)


def _text(prompt: str, found: Generated, chosen: DecodeSettings) -> Text:
    return Text(prompt + found.text, found.logprob, found.reason, _seed(chosen), len(found.ids))


def _seed(chosen: DecodeSettings) -> int | None:
    return chosen.seed if chosen.decode == "sample" else None
