"""The type of products and the device: the faster one that works, or the one that was named."""

import pytest
import torch
from tiny_networks import make_rnn

from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.models import precision
from nextword.system import processor
from nextword.system.processor import Processor
from nextword.training.ranks import Ranks

WORKS = {"linear 128": 1.5, "linear 512": 2.0, "lstm 128": 0.8, "lstm 512": 1.5}


@pytest.mark.parametrize(
    ("found", "asked", "taken"),
    [
        (Processor("works", ratios=WORKS), "auto", "bf16"),
        (Processor("works", ratios=dict.fromkeys(WORKS, 0.5)), "auto", "fp32"),
        (Processor("works", ratios=dict.fromkeys(WORKS, 0.5)), "bf16", "bf16"),
        (Processor("works", ratios=WORKS), "fp32", "fp32"),
        (Processor("missing", why="emulated"), "auto", "fp32"),
        (Processor("missing", why="emulated"), "bf16", "bf16"),
        (Processor("crashes"), "auto", "fp32"),
        (Processor("unknown"), "auto", "fp32"),
        (Processor("works", "AVX512_CORE_FP16", WORKS), "auto", "fp32"),  # the limit came too late for torch
    ],
)
def test_faster_type_is_taken_unless_one_is_named(found, asked, taken, monkeypatch):
    monkeypatch.setattr(processor, "_answer", found)
    monkeypatch.delenv("NEXTWORD_MAX_CPU_ISA", raising=False)
    assert precision.choose(asked, make_rnn(), Ranks()) == taken


def test_lstm_layers_of_each_width_have_a_type_of_their_own(monkeypatch):
    monkeypatch.setattr(processor, "_answer", Processor("works", ratios=WORKS))
    lstm = catalog.find("model", "lstm")
    for width, taken in ((64, "fp32"), (600, "bf16")):
        model = lstm.build(lstm.Settings(hidden=width, layers=1), 5, False)
        assert precision.choose("auto", model, Ranks()) == taken


@pytest.mark.parametrize(
    ("found", "asked", "words"),
    [
        (Processor("crashes", why="bf16 products crash"), "bf16", "crash; set it to auto or fp32"),
        (Processor("crashes", why="float32 products fail", has_float32=False), "auto", "networks cannot be"),
    ],
)
def test_type_that_would_kill_the_process_is_refused_in_one_sentence(found, asked, words, monkeypatch):
    monkeypatch.setattr(processor, "_answer", found)
    with pytest.raises(ConfigError, match=words):
        precision.choose(asked, make_rnn(), Ranks())


def test_device_that_is_not_there_gets_one_sentence():
    missing = next(name for name, there in (("cuda", torch.cuda.is_available()), ("mps", False)) if not there)
    with pytest.raises(ConfigError, match=f"'--device {missing}' is not available on this machine"):
        precision.find_device(missing)
    assert precision.find_device("cpu") == torch.device("cpu")
