"""Products of few rows with packed matrices, as decoding makes them: our panels beside oneDNN, by turns.

python benchmarks/products.py [--rounds 7] prints GFLOP/s by CPU time on one thread, medians of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time

from nextword.system.before_torch import make_ready

SHAPES = ((128, 128), (256, 256), (256, 1024), (1024, 256), (256, 6000))  # inputs and outputs
ROWS = (1, 4, 8, 16, 64, 320, 1000)
WORK = 2e8  # multiply-adds that are timed at once


def seconds(product, x_ND, times):
    """Return the CPU seconds of a product."""
    began = time.process_time()
    for _ in range(times):
        product(x_ND)
    return (time.process_time() - began) / times


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    make_ready(lambda *_: None)
    import torch

    from nextword.blocks import packed

    torch.set_num_threads(1)
    if not packed.prefers_panels():
        raise SystemExit("this processor has neither AVX2 nor AVX-512, so no panels are used on it")
    packed.uses_panels = lambda: False  # `PackedMatrix` is oneDNN's then
    print("| rows x inputs -> outputs | oneDNN, packed | panels |\n|---|---|---|")
    with torch.inference_mode():
        for inputs, outputs in SHAPES:
            weight_OI, bias_O = torch.randn(outputs, inputs), torch.randn(outputs)
            products = packed.PackedMatrix(weight_OI, bias_O), packed.Panels(weight_OI, bias_O)
            for rows in ROWS:
                x_ND, times = torch.randn(rows, inputs), max(3, int(WORK / (rows * inputs * outputs)))
                found = [[seconds(each, x_ND, times) for each in products] for _ in range(args.rounds + 1)]
                speeds = [
                    2e-9 * rows * inputs * outputs / statistics.median(s)
                    for s in zip(*found[1:], strict=True)
                ]
                print(
                    f"| {rows:,} x {inputs:,} -> {outputs:,} | {speeds[0]:.0f} | {speeds[1]:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
