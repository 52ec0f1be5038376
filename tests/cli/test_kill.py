"""A training that is killed at any moment leaves the old run or the new one, never half of one."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from nextword.runs import saved


@pytest.mark.slow
def test_killed_training_leaves_the_old_run_or_the_new_one(tmp_path):
    text, out = tmp_path / "t.txt", tmp_path / "run"
    words = random.Random(0).choices([f"w{i}" for i in range(500)], k=60_000)
    text.write_text("\n".join(" ".join(words[i : i + 12]) for i in range(0, len(words), 12)) + "\n")
    command = [sys.executable, "-m", "nextword", "train", str(text), "--model", "ngram", "--out", str(out)]
    began = time.monotonic()
    subprocess.run([*command, "--set", "model.order=2"], check=True, capture_output=True)
    took = time.monotonic() - began
    orders = set()
    for trial in range(8):
        order = 3 + trial % 2
        process = subprocess.Popen(
            [*command, "--set", f"model.order={order}", "--overwrite"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(took * (0.3 + 0.1 * trial))
        process.send_signal(signal.SIGKILL)
        process.wait()
        trained = saved.load(out, verify=True)
        orders.add(trained.model.order)
        assert trained.settings.model.order == trained.model.order
    subprocess.run([*command, "--overwrite"], check=True, capture_output=True)
    assert sorted(os.listdir(tmp_path)) == [".latest", "run", "t.txt"]  # leftovers of the dead are swept
    assert orders <= {2, 3, 4}
