"""A text of 128k tokens is scored in bounded memory by every mixer whose state has a fixed size [L33]."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from nextword.core import catalog
from nextword.evaluation.lm.streams import ScoreStream

torch.set_num_threads(1)
WINDOWED = ("window", "lightconv", "dynamicconv")
LINEAR = (
    "linear", "retnet", "gla", "mamba2", "delta", "rwkv7", "lstm", "gru", "mingru", "minlstm", "sru", "qrnn",
    "mlstm", "slstm",
)  # fmt: skip
V, LONG = 40, 2**17
MOST = 60  # MB that scoring may add, of a text whose attention would need gigabytes
SCRIPT = """
import resource, sys, numpy as np, torch
torch.set_num_threads(1)
from test_long_texts import LONG, V, model_of
from nextword.evaluation.lm.streams import ScoreStream

model = model_of(sys.argv[1], LONG)
ids = np.random.default_rng(0).integers(3, V, LONG).astype(np.int32)
ids[0] = 1
stream, done, nats = ScoreStream(model, carry=True), 0, 0.0
for at in range(0, LONG, 8192):
    nats -= float(np.sum(stream.push(ids[at : at + 8192], (0,) if at == 0 else ()), dtype=np.float64))
    if at == 8192:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert np.isfinite(nats)
print((after - before) // 1024)
"""


def model_of(mixer: str, context: int):
    family = catalog.find("model", "transformer")
    torch.manual_seed(0)
    parts = {"mixer": mixer, "position": "none", "qk_norm": "none", "init": "gpt2"}
    settings = family.Settings(layers=1, hidden=16, heads=2, context=context, **parts)
    return family.build(settings, V, True).model()


def kept(model, tokens: int) -> int:
    """How many numbers the layers remember after so many tokens."""
    ids_BT = np.random.default_rng(1).integers(3, V, (1, tokens))
    state = model.start(1, begin=False)
    for at in range(0, tokens, 512):
        part = ids_BT[:, at : at + 512]
        _, state = model.score(part, np.array([part.shape[1]]), state)
    return sum(tensor.numel() for tensor in _tensors(state.inner.layers))


def _tensors(state):
    if isinstance(state, torch.Tensor):
        return [state]
    return [each for part in state for each in _tensors(part)] if isinstance(state, tuple) else []


@pytest.mark.parametrize("mixer", WINDOWED + LINEAR)
def test_what_is_remembered_does_not_grow_with_the_text(mixer):
    model = model_of(mixer, LONG)
    assert kept(model, 512) == kept(model, 2048)


def test_what_attention_remembers_does_grow():
    model = model_of("attention", LONG)
    assert kept(model, 2048) > 3 * kept(model, 512)


@pytest.mark.parametrize("mixer", ["retnet", "mingru", "window"])
def test_long_text_in_pieces_has_the_score_of_the_text_at_once(mixer):
    model = model_of(mixer, LONG)
    ids = np.random.default_rng(2).integers(3, V, 3000).astype(np.int32)
    ids[0] = 1
    whole = ScoreStream(model, carry=True).push(ids, (0,))
    stream = ScoreStream(model, carry=True)
    parts = [stream.push(ids[at : at + 700], (0,) if at == 0 else ()) for at in range(0, 3000, 700)]
    assert np.allclose(np.concatenate(parts), whole, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("mixer", WINDOWED + LINEAR)
def test_128k_tokens_are_scored_in_bounded_memory(mixer):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, mixer], capture_output=True, text=True, check=False,
        cwd=__file__.rpartition("/")[0],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MOST
