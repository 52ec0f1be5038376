"""Scoring a file with a Transformer, against a plain loop over windows that overlap by half.

    python benchmarks/score.py [--rounds 3] [--tokens 4096] [--layers 6] [--width 384] [--context 256]
                               [--vocab 65,4096,33000] [--threads N]

Both see at least half a context before every word. The loop is the one `transformers` documents for long
texts: one window after another, logits of all its words, log-softmax over all of them, and the new words'
scores. Ours is `evaluation.lm.streams` as `nextword eval` uses it. Equal weights; the sums agree but for the
first new word of each window, which sees a whole window in ours and half of one in the loop. Both run in a
process with our allocator setting (--stock: without).
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

from nextword.core.contracts import END, START
from nextword.evaluation.lm.streams import ScoreStream
from nextword.models.network import NeuralLanguageModel


def loop_over_windows(model: torch.nn.Module, ids: torch.Tensor, context: int) -> float:
    """log p of all words but the first, as the documentation of `transformers` goes through a long text."""
    total, scored, stride = 0.0, 1, context // 2
    with torch.inference_mode():
        for begin in range(0, len(ids), stride):
            end = min(begin + context, len(ids))
            window = ids[None, begin:end]
            logp = torch.log_softmax(model(window).logits[0, :-1].float(), dim=-1)
            each = logp.gather(1, window[0, 1:, None])[:, 0]
            total += float(each[scored - begin - 1 :].sum())
            scored = end
            if end == len(ids):
                return total
    return total


def compare(vocab: int, args: argparse.Namespace) -> None:
    theirs = their_gpt2(vocab, args.context, args.width, args.layers, args.width // 64)
    network = our_gpt2(theirs)
    network.head.closed_V.zero_()  # theirs gives START a probability too
    model = NeuralLanguageModel(network)
    words = np.random.default_rng(0).integers(3, vocab, args.tokens - 1)
    packed = np.concatenate([[START], words, [END]]).astype(np.int32)
    ids, sums = torch.from_numpy(packed.astype(np.int64)), [0.0, 0.0]

    def ours() -> None:
        sums[0] = float(ScoreStream(model).push(packed).sum())

    def peer() -> None:
        sums[1] = loop_over_windows(theirs, ids, args.context)

    costs = by_turns(args.rounds, ours, peer)
    report(f"score, {args.layers} x {args.width}, {vocab:,} words", *costs, "loop", args.tokens, "tokens")
    print(f"    nats a word: ours {-sums[0] / args.tokens:.5f}, theirs {-sums[1] / args.tokens:.5f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--vocab", default="65,4096,33000")
    parser.add_argument("--threads", type=int, default=0, help="0: as torch chooses")
    parser.add_argument("--stock", action="store_true", help="leave the allocator as it is, for both")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    for vocab in map(int, args.vocab.split(",")):
        compare(vocab, args)


if __name__ == "__main__":
    main()
