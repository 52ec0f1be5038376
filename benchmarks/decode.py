"""Beam search against `transformers`' generate, int8 against fp32, drafts against plain decoding.

    python benchmarks/decode.py [--rounds 5] [--batches 1,8] [--beam 5] [--tokens 64] [--layers 6]
                                [--width 384] [--vocab 4096] [--context 256] [--threads N]
    python benchmarks/decode.py --run RUN --file FILE [--draft RUN2] [--drafted 4] [--batches 1,8]

The first form compares greedy and beam search of the same GPT-2 weights, the peer with its cache and nothing
else to do: no end of text to look for. The second form takes a trained language model and continues lines of
a text: plain, in int8, and with a draft (greedy and sampled; the share of drafted tokens that was kept). All
take turns; figures are medians of wall and of CPU time. Texts are compared, too.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable
from typing import Any

from nextword.system.allocator import keep_big_arrays

if "--stock" not in sys.argv:
    keep_big_arrays()  # for both sides, since they share the process; before torch is loaded

import numpy as np
import torch
from support.costs import by_turns, median, report
from support.gpt2 import our_gpt2, their_gpt2

from nextword.core.contracts import START
from nextword.decode.generate import collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.decode.speculate import Draft
from nextword.models.int8 import use_int8
from nextword.models.network import NeuralLanguageModel

PROMPT = 16
Texts = list[list[int]]


def writer(model: Any, prompts: Texts, draft: Draft | None = None, **asked: Any) -> Callable[[], Texts]:
    """What writes the same number of tokens after each prompt."""
    rows = len(prompts) * asked.get("beam_size", 1)
    settings = DecodeSettings(batch=rows, unknown=True, seed=1, **asked)
    return lambda: [list(text.ids) for text in collect(generate(model, prompts, settings, draft=draft))]


def equal(first: Texts, second: Texts) -> float:
    """Which share of the tokens is equal, place by place."""
    pairs = [pair for rows in zip(first, second, strict=True) for pair in zip(*rows, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)


def against_transformers(batch: int, args: argparse.Namespace) -> None:
    theirs = their_gpt2(args.vocab, args.context, args.width, args.layers, args.width // 64)
    theirs.generation_config.eos_token_id = None  # it writes as many tokens as are asked for
    network = our_gpt2(theirs)
    network.fixed = True
    model = NeuralLanguageModel(network)
    prompts = np.random.default_rng(0).integers(3, args.vocab, (batch, PROMPT))
    starts_B1 = torch.full((batch, 1), START)  # as ours reads it
    given = torch.cat([starts_B1, torch.from_numpy(prompts)], dim=1)
    length = {"max_tokens": args.tokens, "min_tokens": args.tokens}
    for name, own, other in (
        ("greedy", {"decode": "greedy"}, {}),
        (
            f"beam {args.beam}",
            {"decode": "beam", "beam_size": args.beam, "length_penalty": 0.0},
            {"num_beams": args.beam, "length_penalty": 0.0},
        ),
    ):

        def peer(other: dict[str, Any] = other) -> Texts:
            with torch.inference_mode():
                ids = theirs.generate(
                    given, attention_mask=torch.ones_like(given), max_new_tokens=args.tokens, do_sample=False,
                    **other,
                )  # fmt: skip
            return ids[:, PROMPT + 1 :].tolist()

        ours = writer(model, prompts.tolist(), **own, **length)
        same = equal(ours(), peer())
        report(
            f"{name}, {args.layers} x {args.width}, batch {batch}", *by_turns(args.rounds, ours, peer),
            "transformers", batch * args.tokens, "tokens",
        )  # fmt: skip
        print(f"    {same:.1%} of the tokens are equal", flush=True)


def of_a_run(args: argparse.Namespace) -> None:
    from nextword.api.opened import opened

    run = opened(args.run)
    with open(args.file, encoding="utf-8") as file:
        lines = [line for line in file.read().split("\n") if len(line) > 20]
    rough = copy.deepcopy(run.model)
    note = use_int8(rough.network)  # type: ignore[attr-defined]
    print(note or f"{args.run} in int8")
    length = {"max_tokens": args.tokens, "min_tokens": args.tokens}
    for batch in map(int, args.batches.split(",")):
        prompts = [[int(i) for i in run.tokenizer.encode(line)][:PROMPT] for line in lines[:batch]]
        for decode in ("greedy", "sample"):
            plain = writer(run.model, prompts, decode=decode, **length)
            works = {"int8": writer(rough, prompts, decode=decode, **length)}
            draft = None
            if args.draft is not None:
                draft = Draft(opened(args.draft).model, args.drafted)
                works["draft"] = writer(run.model, prompts, draft, decode=decode, **length)
            costs = by_turns(args.rounds, plain, *works.values())
            for name, found in zip(works, costs[1:], strict=True):
                wall, cpu = (median(costs[0], what) / median(found, what) for what in ("wall", "cpu"))
                kept = f", {draft.rate:.0%} of drafted tokens kept" if name == "draft" and draft else ""
                print(f"{decode}, batch {batch}: {name} {wall:.2f}x wall, {cpu:.2f}x CPU of plain{kept}")
            print(f"    int8: {equal(plain(), works['int8']()):.1%} of the tokens are equal", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--threads", type=int, default=0, help="0: as torch chooses")
    parser.add_argument("--stock", action="store_true", help="leave the allocator as it is, for both")
    parser.add_argument("--run", help="a trained language model")
    parser.add_argument("--file", help="a text whose lines it continues")
    parser.add_argument("--draft", help="a run that drafts")
    parser.add_argument("--drafted", type=int, default=4, help="tokens drafted at a time")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.run is not None:
        of_a_run(args)
        return
    for batch in map(int, args.batches.split(",")):
        against_transformers(batch, args)


if __name__ == "__main__":
    main()
