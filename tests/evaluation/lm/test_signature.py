"""The signature says how a number was measured."""

from __future__ import annotations

from nextword.evaluation.lm.signature import signature


def test_the_signature_says_how_it_was_measured(trained):
    line = signature(*trained(order=3))
    assert line.startswith("bits|tok:words|unit:line|unk:spelled|ctx:2|lossless:yes|nextword:")
    assert "|unk:literal|" in signature(*trained(unknown="literal"))
    assert "|unk:none|" in signature(*trained("bytes"))
    assert "|lossless:no|" in signature(*trained(lowercase=True))
