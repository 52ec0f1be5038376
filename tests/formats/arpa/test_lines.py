"""Numbers of ARPA files: seven decimals, and never above one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.formats.arpa.lines import SCALE, fixed_point, show_number


@given(st.floats(0, 1, width=32))
def test_numbers_have_seven_decimals(p: float) -> None:
    text = show_number(int(fixed_point(np.array([p], dtype=np.float32), False)[0])).decode()
    assert re.fullmatch(r"0|-\d\d?\.\d{7}", text)
    expected = np.log10(p) if p > 1e-38 else None
    if expected is not None:
        assert float(text) == pytest.approx(expected, abs=0.6 / SCALE)


def test_probabilities_above_one_by_rounding_are_written_as_one() -> None:
    values = np.array([1.0000001, 1.0, 0.0], dtype=np.float32)
    assert fixed_point(values, positive=False).tolist() == [0, 0, -99 * SCALE]
    assert fixed_point(np.array([10.0], dtype=np.float32), positive=True).tolist() == [SCALE]
