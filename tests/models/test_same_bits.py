"""Where one thread multiplies by panels, a row of a batch has the bits that it has alone."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.blocks import packed
from nextword.decode.engine import Engine
from nextword.decode.requests import Request
from nextword.decode.settings import DecodeSettings
from nextword.models.network import NeuralLanguageModel
from nextword.models.recurrent import (
    GRU,
    GRU_TORCH,
    LSTM,
    MINGRU,
    RNN,
    GatedSettings,
    MinGRUSettings,
    RNNSettings,
)
from nextword.models.transformer import TRANSFORMER, TransformerSettings
from nextword.models.window import WINDOW, WindowSettings
from nextword.system import threads

pytestmark = [
    pytest.mark.skipif(not packed.prefers_panels(), reason="this processor multiplies otherwise"),
    pytest.mark.skipif(not packed.can_pack(), reason="this torch has no packed products"),
]
V = 50
SMALL = {"hidden": 32, "layers": 2, "dropout": 0.0}
ATTENTION = SMALL | {"heads": 4, "head_size": 8, "inner": 48}
MADE = {
    "lstm": lambda: LSTM.build(GatedSettings(**SMALL), V, False),
    "gru": lambda: GRU.build(GatedSettings(**SMALL), V, False),
    "gru-torch": lambda: GRU_TORCH.build(GatedSettings(**SMALL), V, False),
    "mingru": lambda: MINGRU.build(MinGRUSettings(**SMALL), V, False),
    "rnn": lambda: RNN.build(RNNSettings(**SMALL), V, False),
    "window": lambda: WINDOW.build(WindowSettings(hidden=32, dropout=0.0), V, False),
    "transformer": lambda: TRANSFORMER.build(TransformerSettings(**ATTENTION), V, False),
    "windows": lambda: TRANSFORMER.build(TransformerSettings(**ATTENTION, context=40), V, False),
    "published": lambda: TRANSFORMER.build(
        TransformerSettings(
            **ATTENTION, kv_heads=2, position="sinusoidal", norm="layernorm", ffn="gelu", qk_norm="none"
        ),
        V,
        False,
    ),
}


@pytest.fixture(scope="module", params=MADE)
def model(request):
    """A packed network of random weights, while one thread computes."""
    torch.manual_seed(1)
    network = MADE[request.param]().eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.2 * torch.randn_like(weight)
    network.fixed = True
    made = NeuralLanguageModel(network)
    made.ready()
    with threads.using(1):
        yield made


LENGTHS = st.lists(st.integers(0, 90) | st.sampled_from([0, 1, 63, 64, 65]), min_size=2, max_size=9)


@settings(deadline=None, max_examples=25)
@given(lengths=LENGTHS, seed=st.integers(0, 99))
def test_rows_of_any_lengths_have_the_bits_of_each_alone(model, lengths, seed):
    ids_BT = np.random.default_rng(seed).integers(3, V, (len(lengths), max(lengths) + 3))
    again_B = np.random.default_rng(seed).integers(0, 4, len(lengths))
    logp_BT, state = model.score(ids_BT, np.array(lengths))
    more_BT, state = model.score(ids_BT[:, :3], again_B, state)
    stepped_BV, _ = model.step(ids_BT[:, 0], state)
    for row, length in enumerate(lengths):
        one = slice(row, row + 1)
        logp_1T, alone = model.score(ids_BT[one, :length], np.array([length]))
        assert torch.equal(logp_BT[row, :length], logp_1T[0])
        more_1T, alone = model.score(ids_BT[one, :3], again_B[one], alone)
        assert torch.equal(more_BT[row], more_1T[0])
        assert torch.equal(stepped_BV[row], model.step(ids_BT[one, 0], alone)[0][0])


def test_short_text_has_the_same_bits_word_by_word(model):
    ids_BT = np.random.default_rng(0).integers(3, V, (3, 30))
    logp_BT, _ = model.score(ids_BT, np.array([30, 7, 18]))
    state = model.start(3)
    for t, ids_B in enumerate(ids_BT.T):
        own_B = model.next(state)[torch.arange(3), torch.as_tensor(ids_B)]
        for row in np.flatnonzero(np.array([30, 7, 18]) > t):
            assert own_B[row] == logp_BT[row, t]
        _, state = model.step(ids_B, state)


def test_request_gets_the_same_bits_whoever_else_is_in_the_batch(model):
    random = np.random.default_rng(0)

    def ask(number):
        prompt = tuple(np.random.default_rng(number).integers(3, V, number * 7 % 50).tolist())
        how = DecodeSettings(seed=number, max_tokens=5 + number % 9, min_tokens=2)
        return Request(prompt, how, texts=1 + number % 2, scored=number % 3 == 0, top=number % 4)

    together, engine = [ask(number) for number in range(40)], Engine(model, rows=16, piece=40, chunk=200)
    for request in together:
        engine.admit(request)
        for _ in range(random.integers(3)):
            engine.step()
    while not engine.is_idle:
        engine.step()
    for number, request in enumerate(together):
        engine, alone = Engine(model, rows=2, piece=40), ask(number)
        engine.admit(alone)
        while not engine.is_idle:
            engine.step()
        assert request.read == alone.read
        assert [row.tokens for row in request.rows] == [row.tokens for row in alone.rows]
