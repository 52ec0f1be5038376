"""``generate``: continue a prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from nextword.api.arguments import checked
from nextword.api.opened import Name, Opened, language_model
from nextword.api.results import Text
from nextword.core import catalog, config
from nextword.decode.generate import Generated, collect
from nextword.decode.generate import generate as tokens_of
from nextword.decode.settings import DecodeSettings
from nextword.text.unknown import unknown_note

__all__ = ["Ending", "as_json", "generate", "opened", "settings", "stream", "unknown_note", "why_stopped"]
_GROUP = "generate"


def settings(asked: Mapping[str, Any], sets: Mapping[str, Any] | Iterable[str] = ()) -> DecodeSettings:
    """Check the settings and draw a seed if none is given; ``sets`` are ``key=value`` as typed."""
    values = {**asked, **(sets if isinstance(sets, Mapping) else config.parse_sets(sets))}
    dotted = {f"{_GROUP}.{key.removeprefix(_GROUP + '.')}": value for key, value in values.items()}
    built = cast(DecodeSettings, config.build({_GROUP: DecodeSettings}, dotted)[_GROUP])
    catalog.find_path("decode", built.decode)
    return built.seeded()


@checked
def generate(
    run: Opened | Name,
    prompt: str = "",
    *,
    decode: str = "sample",
    max_tokens: int = 100,
    min_tokens: int = 0,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    typical: float = 1.0,
    seed: int | None = None,
    samples: int = 1,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    n_best: int = 1,
    stop: str | Sequence[str] = (),
    ban: str | Sequence[str] = (),
    no_repeat: int = 0,
    repetition_penalty: float = 1.0,
    unknown: bool = False,
    batch: int = 64,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> Text | list[Text]:
    """Continue a prompt; return it with its continuation, or a list if several texts are asked for.

    ``decode`` is "sample", "greedy" or "beam"; ``seed=None`` draws one at random, which the text remembers.

    >>> run = nextword.load("runs/tiny")
    >>> run.generate("the cat sat on the", decode="greedy")
    'the cat sat on the mat'
    >>> len(nextword.generate("runs/tiny", "the", samples=3, temperature=0.8, seed=1))
    3
    """
    chosen = settings(settings_in(locals()), set or {})
    texts = [_text(prompt, found, chosen) for found in collect(_tokens(run, prompt, chosen))]
    return texts[0] if len(texts) == 1 else texts


@dataclass(frozen=True)
class Ending:
    """Why a text ended (``end``, ``length`` or ``stop``), and after how many tokens."""

    reason: str
    tokens: int


def settings_in(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the settings of decoding out of the arguments of a call; rarer ones come by ``set``."""
    found = {name: arguments[name] for name in DecodeSettings.model_fields if name in arguments}
    one = {name: (found[name],) for name in ("stop", "ban") if isinstance(found[name], str)}
    return found | one


def stream(run: Opened | Name, prompt: str, chosen: DecodeSettings) -> Generator[str, None, list[Ending]]:
    """Yield prompt and continuation as they are generated, each text followed by a newline.

    The generator returns how each text ended.
    """
    tokens, endings = _tokens(run, prompt, chosen), []
    if (
        chosen.samples > 1 or chosen.n_best > 1 or chosen.decode == "beam"
    ):  # rows come interleaved: wait for each
        for found in collect(tokens):
            endings.append(Ending(found.reason, len(found.ids)))
            yield prompt + found.text + "\n"
        return endings
    yield prompt  # the run has been opened by now
    count, reason = 0, ""
    for token in tokens:
        count, reason = count + 1, token.reason
        yield token.text
    yield "\n"
    return [Ending(reason, count)]


def why_stopped(endings: Sequence[Ending], unit: str, chosen: DecodeSettings) -> str:
    """Say in one sentence why the texts ended; ``unit``: what END ends."""
    if len(endings) == 1 and endings[0] == Ending("end", 1):
        return (
            f"stopped: the model ended the {unit} right after the prompt; --set min_tokens=10 makes it go on"
        )
    said = {
        "end": f"the model ended the {unit} (END)",
        "length": f"{chosen.max_tokens:,} tokens were generated (--max-tokens)",
        "stop": f"a stop text came ({', '.join(map(repr, chosen.stop))})",
    }
    reasons = Counter(each.reason for each in endings)
    if len(reasons) == 1:
        return f"stopped: {said[endings[0].reason]}"
    return "stopped: " + "; ".join(
        f"{count} of {len(endings)}: {said[each]}" for each, count in reasons.items()
    )


def as_json(run: Opened | Name, prompt: str, chosen: DecodeSettings) -> dict[str, Any]:
    """Collect what `--json` prints."""
    texts = [_text(prompt, found, chosen) for found in collect(_tokens(run, prompt, chosen))]
    rows = [{"text": str(t), "logprob": t.logprob, "tokens": t.tokens, "reason": t.reason} for t in texts]
    return {"prompt": prompt, "decode": chosen.decode, "seed": _seed(chosen), "texts": rows}


def opened(run: Opened | Name) -> Opened:
    """Open a run that can generate."""
    return language_model(run, forward=True)


def _tokens(run: Opened | Name, prompt: str, chosen: DecodeSettings) -> Iterator[Any]:
    found = opened(run)
    ids = [int(i) for i in found.tokenizer.encode(prompt)]
    return tokens_of(found.model, [ids], chosen, found.tokenizer)


def _text(prompt: str, found: Generated, chosen: DecodeSettings) -> Text:
    return Text(prompt + found.text, found.logprob, found.reason, _seed(chosen), len(found.ids))


def _seed(chosen: DecodeSettings) -> int | None:
    return chosen.seed if chosen.decode == "sample" else None
