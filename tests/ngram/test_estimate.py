"""The forecast of a count model grows with the text."""

from dataclasses import astuple

from nextword.core import catalog
from nextword.runs.settings import plan


def test_estimate_grows_with_the_text():
    family, settings = catalog.find("model", "ngram"), plan("ngram").model
    small, large = (family.estimate(settings, size, plan("ngram").text) for size in (10**6, 10**9))
    assert all(low < high for low, high in zip(astuple(small), astuple(large), strict=True))


def test_few_bits_take_less_disk():
    family, text = catalog.find("model", "ngram"), plan("ngram").text
    plain, small = (family.estimate(plan("ngram", sets={"model.bits": b}).model, 10**8, text) for b in (0, 8))
    assert small.disk < plain.disk / 4
