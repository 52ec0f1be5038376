"""Bits per byte, the one scale of all models."""

import math

import pytest

from nextword.core.contracts import NATS_PER_BIT, bits_per_byte


def test_a_uniform_choice_of_bytes_costs_eight_bits_a_byte() -> None:
    assert bits_per_byte(10 * math.log(256), 10) == pytest.approx(8.0, rel=1e-15)


def test_a_fair_coin_a_byte_costs_one_bit() -> None:
    assert bits_per_byte(7 * math.log(2), 7) == pytest.approx(1.0, rel=1e-15)
    assert pytest.approx(1.0, rel=1e-15) == -math.log(0.5) / NATS_PER_BIT


def test_an_impossible_text_and_an_empty_one_are_infinite() -> None:
    assert bits_per_byte(math.inf, 3) == math.inf
    assert bits_per_byte(0.0, 0) == math.inf
