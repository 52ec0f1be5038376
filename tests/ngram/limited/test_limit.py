"""The limit holds for the whole command: reading, counting, saving, and opening what was saved."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

_COMMAND = """
import re, sys
from pathlib import Path
from nextword.__main__ import main
try:
    main()
finally:
    print("peak", re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1], file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux, which tells the peak")
def test_many_words_are_learned_and_saved_within_300_mb(tmp_path: Path) -> None:
    draw = random.Random(0)
    with open(tmp_path / "t.txt", "w") as file:
        for _ in range(60_000):  # 600,000 different words, and frequent ones
            rare = [f"{draw.choice('abcdefgh')}{draw.getrandbits(40):x}" for _ in range(10)]
            file.write(" ".join(f"{word} the" if draw.random() < 0.5 else word for word in rare) + "\n")
    words = ["train", "t.txt", "--model", "ngram", "--tokenizer", "words", "--set", "train.memory=300M"]
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, *words, "--out", "run"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    peak = int(done.stderr.rsplit("peak ", 1)[1]) * 1024  # it has no worker processes
    assert peak <= 300_000_000
