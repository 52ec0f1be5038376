"""The compiled scanner is the plain one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.contracts import Block
from nextword.text.chunks import Chunk, word_chunks
from nextword.text.scan import FastScanner, PlainScanner, Scanner
from nextword.text.vocab import Vocabulary

WORDS = st.sampled_from(
    [b"a", b"b", b"<unk>", b"sevenby", b"eightbyt", b"ninebytes", "längeres-wort".encode()]
)
DATA = st.lists(
    WORDS | st.sampled_from([b" ", b"  ", b"\n", b"\t", b"\r\n", b" " * 9, b"\v\f"]) | st.binary(max_size=4)
).map(b"".join)


def plain(vocab: Vocabulary, unit: Any, learn: bool) -> PlainScanner:
    return PlainScanner(dict(vocab.index), len(vocab), unit, learn)


@settings(deadline=None)  # the first call compiles
@given(st.lists(DATA, max_size=3), st.sampled_from(["line", "document"]), st.booleans(), st.booleans())
def test_compiled_and_plain_scanner_agree(texts: list[bytes], unit: Any, learn: bool, literal: bool) -> None:
    vocab = Vocabulary(b"a\nninebytes\n", literal)
    fast = FastScanner(vocab.joined, unit, learn, literal)
    slow = plain(vocab, unit, learn)
    for chunk in word_chunks([Block(text, i % 2 == 0) for i, text in enumerate(texts)], unit):
        one, two = fast.scan(chunk), slow.scan(chunk)
        assert one.ids.tolist() == two.ids.tolist()
        assert one.gaps == two.gaps
        assert one[2:] == two[2:]
    assert fast.joined() == (slow.joined() if learn else vocab.joined)
    assert fast.words_from(4) == slow.words_from(4)
    assert fast.words_from(10**6) == []


def test_the_table_grows_with_the_words() -> None:
    data = b" ".join(b"%d%s" % (i % 40_000, b"long" * (i % 3)) for i in range(60_000))
    fast, slow = FastScanner(b"", "line", True), plain(Vocabulary(b""), "line", True)
    chunk = Chunk(data, False, False, True, len(data))
    assert np.array_equal(fast.scan(chunk).ids, slow.scan(chunk).ids)
    assert fast.joined() == slow.joined()


def test_many_odd_gaps_are_all_counted() -> None:
    data = b"".join(b"w%s\n" % (b" " * (i % 20)) for i in range(3_000))
    chunk = Chunk(data, False, False, True, len(data))
    fast, slow = FastScanner(b"", "line", True), plain(Vocabulary(b""), "line", True)
    assert fast.scan(chunk).gaps == slow.scan(chunk).gaps


def test_a_text_that_turns_out_large_goes_over_to_compiled_code() -> None:
    texts = [b"a b c", b"b d e a", b"f g"]
    chunks = [Chunk(text, False, False, True, len(text)) for text in texts]
    switching, slow = Scanner(Vocabulary(b""), "line", True, small=8), plain(Vocabulary(b""), "line", True)
    assert switching.joined() == b""
    assert switching.words_from(3) == []
    for chunk in chunks:
        assert switching.scan(chunk).ids.tolist() == slow.scan(chunk).ids.tolist()
    assert isinstance(switching.inner, FastScanner)
    assert switching.joined() == slow.joined()


def test_a_small_text_needs_no_compiler() -> None:
    program = (
        "import sys\n"
        "from nextword.core.contracts import Block\n"
        "from nextword.text.settings import TextSettings\n"
        "from nextword.text.words import WordTokenizer\n"
        "made = WordTokenizer.fit([Block(b'a b c' * 1000, True)], TextSettings())\n"
        "list(made.encode_blocks([Block(b'a b d', True)], costs=True))\n"
        "print([name for name in ('numba', 'torch', 'tokenizers') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
