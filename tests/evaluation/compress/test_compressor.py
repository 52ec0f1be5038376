"""The compressor: byte for byte, as small as promised, and damage is found."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.catalog import names
from nextword.core.contracts import Block
from nextword.core.errors import FormatError
from nextword.core.events import Done, Progress
from nextword.evaluation.compress.compressor import HEADER, compress, compressing, decompress
from nextword.evaluation.lm.perplexity import evaluate

RUN, OTHER = "ab" * 32, "cd" * 32
TOKENIZERS = names("tokenizer")
SMOOTHINGS = names("smoothing")

odd_text = st.text(alphabet="the cat\t\r\n\v\f é猫😀\u2028\u00a0zq<unk>", max_size=120).map(str.encode)
any_text = st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))
any_bytes = st.one_of(odd_text, any_text, st.binary(max_size=120))
ODD = [b"", b"the cat", b"a  b\tc\r\n\r\n  d \n\nno end", b"\xff\xfe\x00z", b"zebra under under\n", b"\n"]


@pytest.fixture(scope="module")
def small_file(trained, text_maker):
    return compress(*trained(), text_maker(20, seed=2), RUN)


def back_and_forth(model, tokenizer, data):
    packed = compress(model, tokenizer, data, RUN)
    assert decompress(model, tokenizer, packed, RUN) == data
    return packed


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=30, deadline=None)
@given(data=any_bytes)
def test_every_file_comes_back_byte_for_byte(trained, name, data):
    assert len(back_and_forth(*trained(name), data)) <= len(data) + HEADER


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("data", ODD)
def test_every_smoothing_gives_the_file_back(trained, smoothing, data):
    back_and_forth(*trained(smoothing=smoothing), data)


@pytest.mark.parametrize("settings_", [{"unknown": "literal"}, {"lowercase": True}, {"min_count": 5}])
def test_other_text_settings_give_the_file_back(trained, settings_):
    model, tokenizer = trained(**settings_)
    back_and_forth(model, tokenizer, "The <unk> cat zebra\r\n\n the ÜBERALL".encode())


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_size_is_what_bits_per_byte_promises(trained, text_maker, name):
    model, tokenizer = trained(name)
    data = text_maker(40, seed=5) + b"a zebra was here  \n\nand no end"
    promised = evaluate(model, tokenizer, [Block(data, True)]).bits_per_byte * len(data) / 8
    size = len(back_and_forth(model, tokenizer, data))
    assert promised - 8 <= size <= 1.01 * promised + 64


def test_an_incompressible_file_is_stored_with_a_header_only(trained):
    data = np.random.default_rng(0).bytes(500)
    assert len(back_and_forth(*trained("bytes"), data)) == len(data) + HEADER
    assert len(back_and_forth(*trained("words"), data)) == len(data) + HEADER


def test_another_run_is_refused_by_name(trained):
    model, tokenizer = trained()
    packed = compress(model, tokenizer, b"the cat sat\n", RUN)
    with pytest.raises(FormatError, match=f"{'ab' * 16}.*{'cd' * 16}"):
        decompress(model, tokenizer, packed, OTHER)
    with pytest.raises(FormatError, match=r"^x\.nwz: "):
        decompress(model, tokenizer, packed, OTHER, "x.nwz")


def test_a_run_may_have_any_name(trained):
    model, tokenizer = trained()
    assert decompress(model, tokenizer, compress(model, tokenizer, b"cat", "my run"), "my run") == b"cat"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 7), st.integers(0, 400), st.binary(max_size=8))
def test_damage_anywhere_is_a_format_error(trained, small_file, place, bit, cut, more):
    (model, tokenizer), packed = trained(), small_file
    flipped = bytearray(packed)
    flipped[place % len(packed)] ^= 1 << bit
    for damaged in (bytes(flipped), packed[: -1 - cut % len(packed)], packed + more + b"x", more):
        with pytest.raises(FormatError):
            decompress(model, tokenizer, damaged, RUN)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=25, deadline=None)
@given(mode=st.integers(0, 3), length=st.integers(0, 3000), payload=st.binary(max_size=100))
def test_a_forged_file_with_right_checksums_is_a_format_error_too(trained, name, mode, length, payload):
    model, tokenizer = trained(name)
    head = bytes([mode]) + bytes.fromhex(RUN)[:16] + b"\0" * 8
    size = length.to_bytes(8, "little")
    check = zlib.crc32(head + size + payload).to_bytes(4, "little")
    with pytest.raises(FormatError):
        decompress(model, tokenizer, b"NWZ\x01" + head + check + size + payload, RUN)


def test_a_newer_format_says_so(trained):
    model, tokenizer = trained()
    packed = bytearray(compress(model, tokenizer, b"the cat", RUN))
    packed[3] = 9
    with pytest.raises(FormatError, match="version is 9"):
        decompress(model, tokenizer, bytes(packed), RUN)


def test_progress_is_yielded(trained, text_maker):
    events = list(compressing(*trained(), text_maker(250), RUN))
    assert any(isinstance(event, Progress) for event in events)
    assert isinstance(events[-1], Done)
