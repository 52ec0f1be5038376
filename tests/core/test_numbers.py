"""Numbers as people read them."""

import math

import pytest

from nextword.core.numbers import show_number


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (1090.158, 2, "1,090.16"),
        (2.29144, 4, "2.2914"),
        (999_999_999.0, 2, "999,999,999.00"),
        (6_615_864_777_159_000_064.0, 2, "6.6e+18"),
        (math.inf, 2, "infinite"),
        (math.nan, 2, "not a number"),
    ],
)
def test_number_is_shown_with_the_digits_that_mean_something(value, digits, shown):
    assert show_number(value, digits) == shown
