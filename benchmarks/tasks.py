"""Taggers and classifiers against their peers, in turns; each row is a file of ``support``.

    python benchmarks/tasks.py [--only tagging] [--flair PYTHON] [--rounds 5] [--steps 20] [--threads 1]
    python benchmarks/tasks.py --only equal [--flair PYTHON] [--fasttext PYTHON] [--minutes 1]

--flair: the Python of an environment of its own: ``pip install flair 'transformers<5' torch==2.13.0``.
--fasttext: one with ``pip install fasttext-wheel``. `tagging` is speed, `equal` quality after equal CPU
minutes; its cells are lines of the file --results, and those that are there are not run again.
"""

from __future__ import annotations

import argparse
import importlib

ROWS = ("tagging", "equal")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(ROWS))
    parser.add_argument("--flair", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--predicted", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--fasttext", default="")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--data", default="SST-2,SMS,WNUT-17,EWT,Reuters")
    parser.add_argument("--programs", default="auto,lstm,flair,fasttext,sklearn")
    parser.add_argument("--results", default="equal-minutes.jsonl")
    args = parser.parse_args()
    for name in args.only.split(","):
        importlib.import_module(f"support.{name}").run(args)
