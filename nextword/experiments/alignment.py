"""Soft alignment: which Hindi word each English word looks at, walked through with numbers.

[MAUSAM "Multiple Encoded Vectors → Single Summary" (राम, रावण), "Attention", "Cross-Attention Details": keys
k = Kh and values v = Vh come from the encoder, queries q = Qz from the decoder; PENN "Dot-Product Attention"]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from nextword.core.contracts import Source
from nextword.core.events import Event, Stage
from nextword.data.paired import encode_sources
from nextword.drawing.heat import Names, heat
from nextword.drawing.page import Table
from nextword.evaluation.pairs.counted import Floats
from nextword.experiments import fitting, languages
from nextword.experiments.finding import Judge
from nextword.experiments.languages import SLIDE, Words
from nextword.experiments.learners import train_translator, translated
from nextword.experiments.result import Chart, ExperimentResult, cells, finish
from nextword.experiments.small import Count
from nextword.models.seq2seq import Translator
from nextword.tasks.translation import alignment

CLAIM = (
    "Attention gives a soft alignment: each word that is written looks most at the words of the source that "
    "it translates, with weights that sum to 1; keys and values come from the encoder, queries from the "
    "decoder."
)
SUMS = "the weights of a word sum to 1 over the words of the source"
FORMULA = "they are softmax(q · k / √K) with k = Kh and q = Qz, and c sums the values v = Vh by them"
NEW = "a sentence that was never seen is translated, the slide's राम ने रावण को मारा among them"
LOOKS = "each English word looks most at the Hindi word that it translates"
CLAIMS = (SUMS, FORMULA, NEW, LOOKS)
WORDS = {**languages.NAMES, **{past: verb for verb, (past, _) in languages.VERBS.items()}}
SMALL: dict[str, Any] = {
    "model.hidden": 24, "model.context": "init+attention", "model.attention": "multihead", "train.batch": 12,
    "train.rate": 1e-2,
}  # fmt: skip
RIGHT = 0.9  # of the sentences or words: enough
CLOSE = 1e-5


class Walk(NamedTuple):
    """One step of attention with its numbers: a query, keys, scores, weights, values and their sum."""

    q_K: Floats
    k_SK: Floats
    e_S: Floats
    weights_S: Floats
    c_D: Floats
    gap: float  # to what the network itself computes


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train on a little Hindi, translate the slide's sentence, and show where each word looks."""
    fitting.refuse("alignment", run)
    steps, tested = (10, 6) if quick else (500, 60)
    pairs = languages.hindi(200 + tested)
    learned, held = pairs[:200], [SLIDE, *pairs[200:]]
    yield Stage("train", steps, "steps")
    model = yield from _train(learned, steps)
    texts = translated(model, [each.source for each in held])
    maps = [weights_of(model, each) for each in held]
    walk = walk_through(model, SLIDE)
    judge = Judge(quick)
    apart = max(float(np.abs(weights_TS.sum(axis=1) - 1).max()) for weights_TS in maps)
    judge.exact(SUMS, apart < CLOSE, f"off by {apart:.1g} at the most, over {len(held)} sentences")
    judge.exact(
        FORMULA, walk.gap < CLOSE, f"computed by hand they differ by {walk.gap:.1g} from those of the network"
    )
    right = float(np.mean([text == each.target for text, each in zip(texts, held, strict=True)]))
    judge.measure(
        NEW,
        right > RIGHT and texts[0] == SLIDE.target,
        f"{right:.0%} of {len(held)} such sentences are right; the slide's: '{texts[0]}'",
    )
    share, count = aligned(maps, held)
    judge.measure(LOOKS, share > RIGHT, f"{share:.1%} of {count} names and verbs of sentences never seen")
    yield from finish(
        ExperimentResult(
            "alignment", "Soft alignment, from Hindi", 'MAUSAM "Encoder-Decoder with Attention"', CLAIM,
            f"{share:.0%} of names and verbs look most at the Hindi word they translate",
            judge.findings,
            "200 Hindi sentences of our own, of eight names, six verbs, yesterday, today and not, and their "
            f"English; {len(held)} others measured. A GRU of {SMALL['model.hidden']} units with attention of "
            f"one head, {steps} steps, one seed. Hindi puts the object and its को before the verb, English "
            "after it.",
            (_picture(maps[0], SLIDE), _numbers(walk), _picture(maps[1], held[1]), _table(held, texts)),
        ),
        out,
    )  # fmt: skip


def _train(pairs: Sequence[Words], steps: int) -> Generator[Event, None, Translator]:
    sets = {**SMALL, "train.steps": steps}
    model = yield from train_translator("gru-torch", pairs, 0, sets, Count())
    return model


def weights_of(model: Translator, pair: Words) -> Floats:
    """Return ``weights_TS``: where each word of a given translation looked, its end included."""
    source, target = _ids(model, pair)
    found: Floats = alignment(model, source, target)
    return found


def _ids(model: Translator, pair: Words) -> tuple[Source, list[int]]:
    ids_1S, lengths_1 = encode_sources([pair.source], model.source_tokenizer).take(np.array([0]), 0)
    ids_1T, _ = encode_sources([pair.target], model.target_tokenizer).take(np.array([0]), 0)
    return Source(ids_1S, lengths_1), ids_1T[0].tolist()


@torch.no_grad()
def walk_through(model: Translator, pair: Words) -> Walk:
    """Compute the attention behind the first word by hand, and compare it with the network's."""
    network: Any = model.network
    source, _ = _ids(model, pair)
    state = network.start(1, Source(torch.from_numpy(source.ids_BS), torch.from_numpy(source.lengths_B)))
    attention, h_SD = network.attention, network.reader(_tensors(source)).features_BSD[0]
    k_SK, v_SK = attention.from_source(h_SD).chunk(2, dim=-1)
    q_K = attention.from_state(state.layers[-1][0][0])
    e_S = k_SK @ q_K / len(q_K) ** 0.5
    weights_S = (e_S - e_S.max()).exp()
    weights_S = weights_S / weights_S.sum()
    c_D = attention.out(weights_S @ v_SK)
    theirs_D, theirs_S = _looked(network, state)
    gap = max(float((theirs_D - c_D).abs().max()), float((theirs_S - weights_S).abs().max()))
    q, k, e, weights, c = (each.double().numpy() for each in (q_K, k_SK, e_S, weights_S, c_D))
    return Walk(q, k, e, weights, c, gap)


def _looked(network: Any, state: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return c and the weights as the network's own attention gives them."""
    sources = state.sources
    bias_U1S = torch.zeros(1, 1, sources.keys_USA.shape[1])
    kept = (sources.keys_USA, sources.values_USD)
    c_URD, weights_URS = network.attention(state.layers[-1][0][None], kept, bias_U1S)
    return c_URD[0, 0], weights_URS[0, 0]


def _tensors(source: Source) -> Source:
    return Source(torch.from_numpy(source.ids_BS), torch.from_numpy(source.lengths_B))


def aligned(maps: Sequence[Floats], held: Sequence[Words]) -> tuple[float, int]:
    """Return how many names and verbs look most at the word that they translate, and how many there are."""
    right = count = 0
    for weights_TS, each in zip(maps, held, strict=True):
        source = each.source.split()
        for at, word in enumerate(each.target.split()):
            if WORDS.get(word) in source:
                count += 1
                right += int(weights_TS[at, : len(source)].argmax()) == source.index(WORDS[word])
    return right / max(1, count), count


def _picture(weights_TS: Floats, pair: Words) -> Chart:
    source, target = [*pair.source.split(), "</s>"], [*pair.target.split(), "</s>"]
    title = f"{pair.source} → {pair.target}"
    drawn = heat(
        weights_TS, Names("English, as it is written", target), Names("Hindi", source), title,
        "share of the attention", (0.0, 1.0),
    )  # fmt: skip
    rows = tuple(
        cells(word, (round(float(w), 3) for w in row)) for word, row in zip(target, weights_TS, strict=True)
    )
    caption = "Each row sums to 1: where the decoder looks before it writes the word."
    return Chart(drawn, caption, Table(("", *source), rows))


def _numbers(walk: Walk) -> Table:
    source = [*SLIDE.source.split(), "</s>"]
    rows = tuple(
        (word, " ".join(f"{x:+.2f}" for x in key[:4]) + " …", round(float(e), 3), round(float(w), 3))
        for word, key, e, w in zip(source, walk.k_SK, walk.e_S, walk.weights_S, strict=True)
    )
    query = " ".join(f"{x:+.2f}" for x in walk.q_K[:4])
    return Table(
        ("word", "k = Kh", "q · k / √K", "α = softmax"), rows,
        f"Before the first English word: q = Qz = {query} … of {len(walk.q_K)} numbers",
    )  # fmt: skip


def _table(held: Sequence[Words], texts: Sequence[str]) -> Table:
    rows = tuple((each.source, each.target, text) for each, text in zip(held[:8], texts, strict=False))
    return Table(("Hindi", "English", "translated"), rows, "Sentences that were never seen")
