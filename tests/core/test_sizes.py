"""Sizes in bytes, as people write them."""

import pytest

from nextword.core.sizes import parse_size, show_size


@pytest.mark.parametrize(
    ("text", "count"),
    [("500M", 500_000_000), ("1.5 GB", 1_500_000_000), ("1Gi", 2**30), ("300000", 300_000), ("2k", 2000)],
)
def test_size_is_read_as_people_write_it(text, count):
    assert parse_size(text) == count


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (12_300_000, "12.3 MB"), (5e15, "5e+03 TB")]
)
def test_size_is_shown_with_its_unit(count, text):
    assert show_size(count) == text
