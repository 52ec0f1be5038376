"""Greedy generation against `transformers`' generate: the same GPT-2 weights, the same words, 1 and 32 rows.

    python benchmarks/generate.py [--rounds 5] [--batches 1,32] [--tokens 128] [--layers 6] [--width 384]
                                  [--vocab 4096] [--context 256] [--threads N]

Ours is `nextword.decode.generate` as the command line program uses it, texts collected; theirs is
`GPT2LMHeadModel.generate` with its cache and nothing else to do: no end of text to look for, no tokens to
suppress. They take turns; figures are medians of wall and of CPU time. Both run in a process with our
allocator setting (--stock: without). The words are compared, too.
"""

from __future__ import annotations

import argparse
import sys

from nextword.system.allocator import keep_big_arrays

if "--stock" not in sys.argv:
    keep_big_arrays()  # for both sides, since they share the process; before torch is loaded

import numpy as np
import torch
from support.costs import by_turns, report
from support.gpt2 import our_gpt2, their_gpt2

from nextword.decode.generate import collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.models.network import NeuralLanguageModel

PROMPT = 16


def compare(batch: int, args: argparse.Namespace) -> None:
    theirs = their_gpt2(args.vocab, args.context, args.width, args.layers, args.width // 64)
    network = our_gpt2(theirs)
    network.fixed = True  # as a run that is loaded
    model = NeuralLanguageModel(network)
    prompts = np.random.default_rng(0).integers(3, args.vocab, (batch, PROMPT))
    settings = DecodeSettings(
        decode="greedy", max_tokens=args.tokens, min_tokens=args.tokens, batch=batch, unknown=True
    )
    given = torch.from_numpy(prompts)
    theirs.generation_config.eos_token_id = None  # it writes as many tokens as are asked for
    options = {"attention_mask": torch.ones_like(given), "do_sample": False}

    def ours() -> list[list[int]]:
        return [list(text.ids) for text in collect(generate(model, prompts.tolist(), settings))]

    def peer() -> list[list[int]]:
        with torch.inference_mode():
            ids = theirs.generate(given, max_new_tokens=args.tokens, **options)
        return ids[:, PROMPT:].tolist()

    pairs = [pair for rows in zip(ours(), peer(), strict=True) for pair in zip(*rows, strict=True)]
    equal = sum(a == b for a, b in pairs) / len(pairs)
    report(
        f"greedy, {args.layers} x {args.width}, batch {batch}", *by_turns(args.rounds, ours, peer),
        "transformers", batch * args.tokens, "tokens",
    )  # fmt: skip
    print(f"    {equal:.1%} of the words are equal")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--threads", type=int, default=0, help="0: as torch chooses")
    parser.add_argument("--stock", action="store_true", help="leave the allocator as it is, for both")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    for batch in map(int, args.batches.split(",")):
        compare(batch, args)


if __name__ == "__main__":
    main()
