"""``generate``: continue a prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from nextword.api.arguments import checked
from nextword.api.beside import Beside, changed, draft_of, names_in, shown
from nextword.api.opened import Name, Opened, language_model
from nextword.api.prompts import notes_on
from nextword.api.results import Text
from nextword.core import catalog, config
from nextword.decode.generate import Generated, GeneratedToken, collect
from nextword.decode.generate import generate as tokens_of
from nextword.decode.settings import DecodeSettings
from nextword.decode.speculate import Draft
from nextword.decode.tree import search_tree

__all__ = [
    "Beside", "Ending", "Writer", "as_json", "generate", "notes_on", "opened", "settings", "shown", "stream",
    "why_stopped",
]  # fmt: skip
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
    beside: Name | Sequence[Name] | None = None,
    draft: Name | None = None,
    precision: Literal["fp32", "int8"] = "fp32",
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> Text | list[Text]:
    """Continue a prompt; return it with its continuation, or a list if several texts are asked for.

    ``decode`` is "sample", "greedy", "beam" or "mbr"; ``seed=None`` draws one at random, which the text
    remembers. ``beside``: runs of the same tokenizer that write together with this one; ``draft``: a small
    run that makes greedy and sample faster. ``set`` takes the rarer settings of decoding, too.

    >>> run = nextword.load("runs/tiny")
    >>> run.generate("the cat sat on the", decode="greedy")
    'the cat sat on the mat'
    >>> len(nextword.generate("runs/tiny", "the", samples=3, temperature=0.8, seed=1))
    3
    """
    chosen = settings(settings_in(locals()), set or {})
    writer = Writer.of(run, Beside(names_in(beside), draft, precision), chosen)
    texts = [_text(prompt, found, chosen) for found in collect(writer.tokens(prompt))]
    return texts[0] if len(texts) == 1 else texts


@dataclass(frozen=True)
class Writer:
    """A run that writes, with what was asked to stand beside it."""

    run: Opened
    settings: DecodeSettings
    draft: Draft | None = None
    notes: tuple[str, ...] = ()  # on what could not be done

    @classmethod
    def of(cls, run: Opened | Name, asked: Beside, settings: DecodeSettings) -> Writer:
        """Open everything that is needed."""
        found, notes = changed(opened(run), asked)
        return cls(found, settings, draft_of(found, asked, settings.draft_tokens), tuple(notes))

    def tokens(self, prompt: str) -> Iterator[GeneratedToken]:
        """Yield the tokens that continue a prompt."""
        ids = [int(i) for i in self.run.tokenizer.encode(prompt)]
        return tokens_of(self.run.model, [ids], self.settings, self.run.tokenizer, draft=self.draft)


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


def stream(writer: Writer, prompt: str) -> Generator[str, None, list[Ending]]:
    """Yield prompt and continuation as they are generated, each text followed by a newline.

    The generator returns how each text ended.
    """
    tokens, endings, chosen = writer.tokens(prompt), [], writer.settings
    if chosen.samples > 1 or chosen.decode in ("beam", "mbr"):  # rows come interleaved: wait for each
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


def as_json(writer: Writer, prompt: str) -> dict[str, Any]:
    """Collect what `--json` prints."""
    chosen, piece = writer.settings, writer.run.tokenizer.piece
    rows, tree = [], None
    if chosen.tree and chosen.decode == "beam":
        ids = [int(i) for i in writer.run.tokenizer.encode(prompt)]
        texts, tree = search_tree(writer.run.model, ids, chosen, writer.run.tokenizer)
    else:
        texts = collect(writer.tokens(prompt))
    for text in texts:
        row: dict[str, Any] = {
            "text": prompt + text.text, "logprob": text.logprob, "tokens": len(text.ids),
            "reason": text.reason,
        }  # fmt: skip
        if text.score is not None:
            row["score"] = text.score
        row["pieces"] = [piece(word) for word in text.ids]
        row["logprobs"] = list(text.logprobs)
        rows.append(row)
    found = {"prompt": prompt, "decode": chosen.decode, "seed": _seed(chosen), "texts": rows}
    if tree is not None:
        found["tree"] = [
            {"parent": each.parent, "piece": piece(each.id), "logprob": each.logprob} for each in tree
        ]
    return found if writer.draft is None else found | {"draft": as_counts(writer.draft)}


def as_counts(draft: Draft) -> dict[str, Any]:
    """Return how well a draft served."""
    return {"drafted": draft.drafted, "kept": draft.kept, "rate": draft.rate, "rounds": draft.rounds}


def opened(run: Opened | Name) -> Opened:
    """Open a run that can generate."""
    return language_model(run, forward=True)


def _text(prompt: str, found: Generated, chosen: DecodeSettings) -> Text:
    return Text(prompt + found.text, found.logprob, found.reason, _seed(chosen), len(found.ids))


def _seed(chosen: DecodeSettings) -> int | None:
    return chosen.seed if is_random(chosen) else None


def is_random(chosen: DecodeSettings) -> bool:
    """Tell whether texts depend on the seed."""
    return chosen.decode == "sample" or (chosen.decode == "mbr" and chosen.candidates_from == "sample")
