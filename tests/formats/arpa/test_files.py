"""ARPA files: written and read back to the same model, plain and compiled alike; faults named by line."""

from __future__ import annotations

import gzip
import os
import random
import re
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.contracts import END, START
from nextword.core.errors import ConfigError, DamagedError, FormatError, NextwordError, RunError
from nextword.formats.arpa.files import ArpaModel, read_arpa, write_arpa
from nextword.ngram.arrays import Level, Trie
from nextword.ngram.estimation import build
from nextword.ngram.model import NgramModel
from nextword.ngram.settings import NgramSettings

GOOD = r"""
\data\
ngram 1=5
ngram 2=5
ngram 3=2

\1-grams:
-1.2	<unk>	0
0	<s>	-0.3
-0.9	</s>	0
-0.5	a	-0.2
-0.7	b	-0.1

\2-grams:
-0.4	<s> a	-0.15
-0.6	a b	-0.25
-0.3	b </s>	0
-0.8	b a	0
-0.9	a </s>	0

\3-grams:
-0.1	<s> a b
-0.2	a b </s>

\end\
"""


LINES = [
    "the cat sat on the mat",
    "the dog sat on the cat",
    "a cat saw the dog",
    "",
    "the mat",
    "on the mat the cat sat",
    "\\<unk> is <unk> and <s> is </s>",
    "naïve ünïcode 日本語 👍🏽 words",
]


def train(
    lines: list[str], order: int = 3, smoothing: str = "modified-kneser-ney"
) -> tuple[NgramModel, list[str]]:
    """A model of some lines, and its words in the order of their ids."""
    words: dict[str, int] = {}
    ids: list[int] = []
    for line in lines:
        ids += [START, *(words.setdefault(word, 3 + len(words)) for word in line.split()), END]
    chosen = NgramSettings(order=order, smoothing=smoothing)
    return build(np.array(ids, dtype=np.int32), 3 + len(words), chosen), list(words)


def put(folder: Path, text: str, name: str = "model.arpa") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def same(one: Trie, other: Trie, rtol: float = 3e-7) -> None:
    assert one.sizes == other.sizes
    for a, b in zip(one.levels, other.levels, strict=True):
        np.testing.assert_array_equal(a.words, b.words)
        np.testing.assert_allclose(a.probs, b.probs, rtol=rtol)
        if a.children is not None:
            assert b.children is not None
            assert a.backoffs is not None
            np.testing.assert_array_equal(a.children, b.children)
            np.testing.assert_allclose(a.backoffs, b.backoffs, rtol=rtol)


def log10(model: ArpaModel, sentence: str) -> float:
    index = {word: i for i, word in enumerate(model.words, start=3)}
    ids = np.array([1, *(index.get(word, 0) for word in sentence.split()), 2])
    return float(NgramModel(model.trie).score_packed(ids).sum() / np.log(10))


# ---- reading --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [True, False])
def test_a_file_reads_as_it_stands(tmp_path: Path, plain: bool) -> None:
    model = read_arpa(put(tmp_path, GOOD), plain=plain)
    assert model.words == ["a", "b"]
    assert model.trie.sizes == [5, 5, 2]
    assert model.notes == ()
    assert model.trie.levels[0].probs[1] == 0  # <s> is never predicted
    assert log10(model, "a b") == pytest.approx(-0.4 - 0.1 - 0.2, abs=1e-6)
    assert log10(model, "b") == pytest.approx(-0.3 - 0.7 - 0.3, abs=1e-6)
    assert log10(model, "a b a") == pytest.approx(-0.4 - 0.1 - 0.25 - 0.8 - 0.9, abs=1e-6)


@pytest.mark.parametrize("plain", [True, False])
def test_the_order_of_the_lines_does_not_matter(tmp_path: Path, plain: bool) -> None:
    blocks = GOOD.split("\n\n")
    generator = random.Random(3)
    for k in (2, 3):
        header, *lines = blocks[k].split("\n")
        generator.shuffle(lines)
        blocks[k] = "\n".join([header, *lines])
    same(
        read_arpa(put(tmp_path, "\n\n".join(blocks), "x"), plain=plain).trie,
        read_arpa(put(tmp_path, GOOD)).trie,
    )


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "# made by hand\n\nsome prose\n" + text,
        lambda text: text.replace("\t", " "),
        lambda text: text.replace("\t", "  \t "),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\n\n\\", "\n\\"),
        lambda text: text.replace("\n\n", "\n\n\n\n"),
        lambda text: text.replace("ngram 1=5", "ngram  1 = 5"),
        lambda text: "\ufeff" + text,
        lambda text: (
            text.replace("-0.3\n", "-3e-1\n").replace("-0.5\t", "-5.E-1\t").replace("-0.7\t", "-.7\t")
        ),
        lambda text: text.replace("\t0\n", "\n"),
        lambda text: text.replace("<s> a b", "<s> a b\t0"),
        lambda text: text.replace("0\t<s>", "-99\t<s>"),
        lambda text: text.replace("<unk>", "<UNK>"),
    ],
)
def test_the_usual_spellings_of_the_format_read_the_same(tmp_path: Path, plain: bool, change: object) -> None:
    path = put(tmp_path, change(GOOD))  # type: ignore[operator]
    path.write_bytes(change(GOOD).encode())  # type: ignore[operator]
    same(read_arpa(path, plain=plain).trie, read_arpa(put(tmp_path, GOOD, "plain")).trie)


def test_gzip_is_known_by_its_bytes_and_not_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "model.arpa"
    path.write_bytes(gzip.compress(GOOD[:100].encode()) + gzip.compress(GOOD[100:].encode()) + b"\0" * 20)
    same(read_arpa(path).trie, read_arpa(put(tmp_path, GOOD, "plain.arpa.gz")).trie)


def test_words_that_look_like_specials_are_unescaped(tmp_path: Path) -> None:
    text = GOOD.replace("\ta\t", "\t\\<unk>\t").replace(" a ", " \\<unk> ").replace("\ta ", "\t\\<unk> ")
    text = text.replace(" a\t", " \\<unk>\t").replace("b\t-0.1", "b\t-0.1")
    assert read_arpa(put(tmp_path, text)).words == ["<unk>", "b"]


def test_missing_specials_are_noted(tmp_path: Path) -> None:
    text = "\\data\\\nngram 1=1\n\n\\1-grams:\n-0.5\ta\n\n\\end\\\n"
    model = read_arpa(put(tmp_path, text))
    notes = " ".join(note.message for note in model.notes)
    assert "there is no <unk>, so unknown words get the probability 0" in notes
    assert "there is no <s>" in notes
    assert "there is no </s>" in notes
    assert model.log10_unknown is None
    assert model.trie.sizes == [4]


@pytest.mark.parametrize("plain", [True, False])
def test_a_missing_suffix_is_put_back_with_its_backed_off_probability(tmp_path: Path, plain: bool) -> None:
    text = GOOD.replace("-0.3\tb </s>\t0\n", "").replace("ngram 2=5", "ngram 2=4")
    model = read_arpa(put(tmp_path, text), plain=plain)
    assert model.trie.sizes == [5, 5, 2]
    assert [note.message.split(": ")[1] for note in model.notes] == [
        "1 missing parts of longer n-grams got their backed-off probability"
    ]
    assert log10(model, "a b") == pytest.approx(-0.4 - 0.1 - 0.2, abs=1e-6)
    assert log10(model, "b") == pytest.approx(-0.3 - 0.7 - 0.1 - 0.9, abs=1e-6)


@pytest.mark.parametrize("plain", [True, False])
def test_missing_contexts_can_be_put_back(tmp_path: Path, plain: bool) -> None:
    text = GOOD.replace("-0.4\t<s> a\t-0.15\n", "").replace("ngram 2=5", "ngram 2=4")
    path = put(tmp_path, text)
    with pytest.raises(
        FormatError, match=r"model\.arpa:21: the 3-gram '<s> a b' has a context that is not among"
    ):
        read_arpa(path, plain=plain)
    model = read_arpa(path, missing_context="insert", plain=plain)
    assert log10(model, "a b") == pytest.approx((-0.3 - 0.5) - 0.1 - 0.2, abs=1e-6)
    assert log10(model, "a") == pytest.approx((-0.3 - 0.5) - 0.9, abs=1e-6)


def backing_off(grams: dict[tuple[str, ...], tuple[float, float]], words: tuple[str, ...]) -> float:
    """log10 p of the last word by the definition, straight from a table of n-grams."""
    if words in grams:
        return grams[words][0]
    return grams.get(words[:-1], (0.0, 0.0))[1] + backing_off(grams, words[1:])


@pytest.mark.parametrize("plain", [True, False])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_randomly_pruned_files_keep_every_probability(
    tmp_path_factory: pytest.TempPathFactory, plain: bool, seed: int
) -> None:
    generator = random.Random(seed)
    words = ["<unk>", "<s>", "</s>", "a", "b", "c"]
    grams = {(w,): (-0.1 * generator.randrange(1, 30), -0.1 * generator.randrange(0, 9)) for w in words}
    order = generator.randrange(2, 6)
    for n in range(2, order + 1):
        for _ in range(generator.randrange(1, 12)):
            row = tuple(generator.choice(words) for _ in range(n))
            grams[row] = (-0.1 * generator.randrange(1, 30), -0.1 * generator.randrange(0, 9) * (n < order))
    by_order = [[row for row in grams if len(row) == n] for n in range(1, order + 1)]
    lines = ["\\data\\", *(f"ngram {n}={len(rows)}" for n, rows in enumerate(by_order, start=1)), ""]
    for n, rows in enumerate(by_order, start=1):
        lines += [
            f"\\{n}-grams:",
            *(f"{grams[r][0]:.1f}\t{' '.join(r)}\t{grams[r][1]:.1f}" for r in rows),
            "",
        ]
    path = put(tmp_path_factory.mktemp("arpa"), "\n".join([*lines, "\\end\\", ""]))
    model = NgramModel(read_arpa(path, missing_context="insert", plain=plain).trie)
    for _ in range(40):
        text = [generator.choice([0, 2, 3, 4, 5]) for _ in range(6)]
        logs = model.score_packed(np.array([1, *text]))[1:] / np.log(10)
        seen = ["<s>"]
        for word, found in zip(text, logs, strict=True):
            seen.append(words[word])
            assert found == pytest.approx(backing_off(grams, tuple(seen[-order:])), abs=2e-6)


# ---- writing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_what_is_written_reads_back(tmp_path: Path, name: str, order: int) -> None:
    model, words = train(LINES, order)
    assert write_arpa(tmp_path / name, model.trie, words) == []
    back = read_arpa(tmp_path / name)
    assert back.words == words
    assert back.notes == ()
    same(back.trie, model.trie)
    assert os.listdir(tmp_path) == [name]
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) & 0o111 == 0


@given(
    lines=st.lists(st.text("ab cdé\\<>unks/", max_size=14), min_size=1, max_size=8),
    order=st.integers(1, 4),
    smoothing=st.sampled_from(
        ["modified-kneser-ney", "witten-bell", "katz", "absolute", "kneser-ney", "stupid"]
    ),
)
@settings(max_examples=40, deadline=None)
def test_both_paths_write_the_same_bytes_and_read_the_same_model(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], order: int, smoothing: str
) -> None:
    folder = tmp_path_factory.mktemp("arpa")
    model, words = train([*lines, "a"], order, smoothing)
    write_arpa(folder / "plain", model.trie, words, plain=True)
    write_arpa(folder / "compiled", model.trie, words, plain=False)
    assert (folder / "plain").read_bytes() == (folder / "compiled").read_bytes()
    one, other = (read_arpa(folder / "plain", plain=plain) for plain in (True, False))
    assert one.words == other.words == words
    same(one.trie, other.trie, rtol=2e-7)
    same(one.trie, model.trie)


def test_slices_join_to_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, words = train(LINES, 4)
    write_arpa(tmp_path / "whole", model.trie, words, plain=False)
    for size in (1, 3, 7):
        monkeypatch.setattr("nextword.formats.arpa.writer._SLICE", size)
        for plain in (True, False):
            write_arpa(tmp_path / "cut", model.trie, words, plain=plain)
            assert (tmp_path / "cut").read_bytes() == (tmp_path / "whole").read_bytes()


def test_very_long_words_fit(tmp_path: Path) -> None:
    model, words = train([f"{'x' * 70_000} a {'y' * 3_000} a"], 3)
    write_arpa(tmp_path / "plain", model.trie, words, plain=True)
    write_arpa(tmp_path / "compiled", model.trie, words, plain=False)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "compiled").read_bytes()
    assert read_arpa(tmp_path / "plain", plain=False).words == words


def test_gzip_output_is_one_plain_member_and_always_the_same(tmp_path: Path) -> None:
    model, words = train(LINES)
    for name in ("a.arpa.gz", "b.arpa.gz", "c.arpa"):
        write_arpa(tmp_path / name, model.trie, words)
    data = (tmp_path / "a.arpa.gz").read_bytes()
    assert data == (tmp_path / "b.arpa.gz").read_bytes()
    assert data.count(b"\x1f\x8b\x08") == 1
    assert gzip.decompress(data) == (tmp_path / "c.arpa").read_bytes()


@pytest.mark.parametrize("smoothing", ["add", "laplace", "mle"])
def test_models_that_do_not_back_off_are_refused(tmp_path: Path, smoothing: str) -> None:
    model, words = train(LINES, 2, smoothing)
    with pytest.raises(ConfigError, match=r"cannot be an ARPA file: .* ARPA only knows backing off"):
        write_arpa(tmp_path / "x.arpa", model.trie, words)
    assert os.listdir(tmp_path) == []


def test_scores_that_do_not_sum_to_one_are_noted(tmp_path: Path) -> None:
    level = Level(np.arange(4, dtype=np.int32), np.full(4, 0.5, dtype=np.float32), None, None)
    (note,) = write_arpa(tmp_path / "x.arpa", Trie((level,)), ["a"])
    assert "the 1-grams sum to 2, not to 1" in note.message


@pytest.mark.parametrize("word", ["a b", "", "a\tb", "a\nb", "a\0b"])
def test_words_with_white_space_are_refused(tmp_path: Path, word: str) -> None:
    model, words = train(LINES)
    with pytest.raises(FormatError, match=re.escape(repr(word))):
        write_arpa(tmp_path / "x.arpa", model.trie, [word, *words[1:]])


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    model, words = train(LINES)
    with pytest.raises(DamagedError, match=rf"{len(words) + 3} words and its vocabulary {len(words) + 2}"):
        write_arpa(tmp_path / "x.arpa", model.trie, words[1:])


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("what", ["words", "children"])
def test_damaged_arrays_are_our_error(tmp_path: Path, what: str, plain: bool) -> None:
    model, words = train(LINES)
    generator = np.random.default_rng(1)
    for _ in range(30):
        levels = list(model.trie.levels)
        n = int(generator.integers(1, 3)) if what == "words" else int(generator.integers(0, 2))
        array = np.array(getattr(levels[n], what))
        array[generator.integers(len(array))] = generator.integers(1 << 20, 1 << 30)
        parts = {name: getattr(levels[n], name) for name in ("words", "probs", "backoffs", "children")}
        levels[n] = Level(**(parts | {what: array}))
        with pytest.raises(DamagedError):
            write_arpa(tmp_path / "x.arpa", Trie(tuple(levels)), words, plain=plain)
    assert os.listdir(tmp_path) == []


def test_files_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    model, words = train(LINES)
    with pytest.raises(RunError, match="could not be written"):
        write_arpa(tmp_path / "no" / "x.arpa", model.trie, words)
    (tmp_path / "x.arpa").write_text("old")
    write_arpa(tmp_path / "x.arpa", model.trie, words)
    assert (tmp_path / "x.arpa").read_bytes().startswith(b"\\data\\\n")
    write_arpa("/dev/null", model.trie, words)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


# ---- faults ---------------------------------------------------------------------------------------------


def without(line: str) -> str:
    assert line in GOOD
    return GOOD.replace(line + "\n", "", 1)


FAULTS = {
    "wrong count": (
        GOOD.replace("ngram 2=5", "ngram 2=6"),
        r":4: the header says 'ngram 2=6', but 5 2-grams follow",
    ),
    "missing line": (without("-0.7\tb\t-0.1"), r":3: the header says 'ngram 1=5', but 4 1-grams follow"),
    "too many lines": (
        GOOD.replace("ngram 3=2", "ngram 3=1"),
        r":5: the header says 'ngram 3=1', but 2 3-grams",
    ),
    "absurd count": (
        GOOD.replace("1=5", "1=999999999999"),
        r":3: the header promises 999,999,999,999 1-grams",
    ),
    "nan": (
        GOOD.replace("-0.6\ta b", "nan\ta b"),
        r":16: the log10 probability is 'nan', which is not a finite",
    ),
    "infinite backoff": (GOOD.replace("-0.25", "-inf"), r":16: the log10 backoff is '-inf'"),
    "huge backoff": (GOOD.replace("-0.25", "300"), r":16: the log10 backoff is '300'"),
    "a word as number": (GOOD.replace("-0.6\ta b", "x\ta b"), r":16: the log10 probability is 'x'"),
    "positive": (
        GOOD.replace("-0.6\ta b", "0.6\ta b"),
        r":16: the log10 probability is 0\.6, and a prob.*IRSTLM",
    ),
    "no end": (GOOD.replace("\\end\\\n", ""), r":24: the file stops before '\\end\\'; it is cut off"),
    "half a section": (GOOD[: GOOD.index("-0.8")], r"the file stops before '\\3-grams:'; it is cut off"),
    "half a line": (GOOD[: GOOD.index("b </s>\n\n\\end")], r"the file stops before '\\end\\'"),
    "only a header": (GOOD[: GOOD.index("\\1-grams")], r"the header promises|the file stops before"),
    "no counts": ("\\data\\\n\n\\1-grams:\n", r":2?.*no 'ngram 1=COUNT' follows"),
    "counts out of order": (GOOD.replace("ngram 2", "ngram 4"), r":4: 'ngram 4=5' should be 'ngram 2=COUNT'"),
    "no unigrams": ("\\data\\\nngram 1=0\n\\1-grams:\n\\end\\\n", r"promises 0 1-grams"),
    "unknown word": (GOOD.replace("a b\t", "a q\t"), r":16: the word 'q' is not among the 1-grams"),
    "too few fields": (
        GOOD.replace("a b\t-0.25", "a"),
        r":16: a 2-gram line has a number, 2 words .* has 2 fields",
    ),
    "too many fields": (GOOD.replace("a b\t", "a b a b\t"), r":16: .* has 6 fields"),
    "nan as backoff": (GOOD.replace("-0.25", "nan"), r":16: the log10 backoff is 'nan', which is not a fin"),
    "nan as backoff of a word": (
        GOOD.replace("-0.7\tb\t-0.1", "-0.7\tb\tnan"),
        r":12: the log10 backoff is 'nan'",
    ),
    "nan of a word": (GOOD.replace("-0.7\tb\t-0.1", "nan\tb\t-0.1"), r":12: the log10 probability is 'nan'"),
    "infinite backoff of a word": (
        GOOD.replace("-0.7\tb\t-0.1", "-0.7\tb\tinf"),
        r":12: the log10 backoff is 'inf'",
    ),
    "underscores in a backoff": (GOOD.replace("-0.25", "-0_1"), r":16: the log10 backoff is '-0_1'"),
    "empty line": (
        GOOD.replace("-0.8\tb a", "\n-0.8\tb a").replace("2=5", "2=6"),
        r":18: there is an empty line",
    ),
    "twice": (GOOD.replace("-0.8\tb a", "-0.8\ta b"), r":18: the 2-gram 'a b' is in line 16 already"),
    "word twice": (GOOD.replace("-0.7\tb", "-0.7\ta"), r":12: the word 'a' is in line 11 already"),
    "missing context": (
        GOOD.replace("<s> a b", "b b a"),
        r":22: the 3-gram 'b b a' has a context that is not",
    ),
    "backoff at the top": (GOOD.replace("<s> a b", "<s> a b\t-0.5"), r":22: a 3-gram has the backoff -0\.5"),
    "section name": (
        GOOD.replace("\\2-grams:", "\\2-gram:"),
        r"the file stops before '\\2-grams:'|was found where",
    ),
    "section twice": (GOOD.replace("\\3-grams:", "\\2-grams:"), r"the file stops before|was found where"),
    "after the end": (GOOD + "more\n", r":26: 'more' comes after"),
    "kenlm binary": ("mmap lm http://kheafield.com/code format version 5\n\0", r":1: this is a KenLM binary"),
    "iARPA": ("iARPA\n" + GOOD.replace("\\data\\", "data"), r":1: this is an IRSTLM iARPA file"),
    "irstlm binary": ("blmt 3 1\n", r":1: this is an IRSTLM binary"),
    "html": ("<!DOCTYPE html><html>404</html>", r":1: this looks like HTML"),
    "lfs": ("version https://git-lfs.github.com/spec/v1\n", r":1: this is a Git LFS pointer"),
    "text": (
        "once upon a time\n",
        r":1: an ARPA file begins with the line '\\data\\', but this one with 'once upon",
    ),
    "data within a line": ("x \\data\\ y\n", r":1: '\\data\\' must be on a line of its own"),
    "empty": ("", r": the file is empty"),
    "control bytes for the end": (
        GOOD.replace("\t</s>\t", "\t\f\v/s>\t"),
        r":10: the word '\\x0c\\x0b/s>' contains a control",
    ),
    "nul in a word": (GOOD.replace("\tb\t", "\tb\0\t"), r":12: the word 'b\\x00' contains a control"),
}


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_with_their_line(tmp_path: Path, fault: str, plain: bool) -> None:
    text, message = FAULTS[fault]
    path = put(tmp_path, text)
    with pytest.raises(FormatError, match=message) as caught:
        read_arpa(path, plain=plain)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("plain", [True, False])
def test_blank_lines_after_a_heading_are_read_over_as_in_kenlm(tmp_path: Path, plain: bool) -> None:
    usual = read_arpa(put(tmp_path, GOOD), plain=plain)
    spaced = GOOD
    for n in (1, 2, 3):
        spaced = spaced.replace(f"\\{n}-grams:\n", f"\\{n}-grams:\n\n \t\n")
    found = read_arpa(put(tmp_path, spaced), plain=plain)
    for level, expected in zip(found.trie.levels, usual.trie.levels, strict=True):
        np.testing.assert_array_equal(level.probs, expected.probs)
    bad = spaced.replace("-0.6\ta b", "x\ta b")
    with pytest.raises(FormatError, match=rf":{bad[: bad.index('x')].count(chr(10)) + 1}: the log10 prob"):
        read_arpa(put(tmp_path, bad), plain=plain)


def test_an_order_without_ngrams_needs_no_blank_line(tmp_path: Path) -> None:
    text = "\\data\\\nngram 1=3\nngram 2=0\n\\1-grams:\n-1\t<unk>\n-1\t<s>\n-1\t</s>\n\\2-grams:\n\\end\\\n"
    assert read_arpa(put(tmp_path, text)).trie.sizes[0] == 3


def test_other_encodings_are_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.arpa"
    path.write_bytes(GOOD.replace("\ta\t", "\té\t").encode("latin-1"))
    with pytest.raises(FormatError, match=r":11: the word '\\\\xe9' is not UTF-8.*iconv"):
        read_arpa(path)
    path.write_bytes(GOOD.encode("utf-16"))
    with pytest.raises(FormatError, match="looks like UTF-16"):
        read_arpa(path)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    put(tmp_path, GOOD)
    with pytest.raises(FormatError, match=r"there is no such file; did you mean '.*model\.arpa'\?"):
        read_arpa(tmp_path / "modle.arpa")
    with pytest.raises(FormatError, match="there is no such file; check the path"):
        read_arpa(tmp_path / "x" / "y")
    with pytest.raises(FormatError, match="cannot be read"):
        read_arpa(tmp_path)


def test_damaged_gzip_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, data = tmp_path / "x.arpa.gz", gzip.compress(GOOD.encode())
    path.write_bytes(data[:-20])
    with pytest.raises(FormatError, match=r"cut off at byte \d+"):
        read_arpa(path)
    path.write_bytes(data[:40] + b"\xff\xff\xff\xff" + data[44:])
    with pytest.raises(FormatError, match="damaged near byte"):
        read_arpa(path)
    path.write_bytes(data + b"tail")
    with pytest.raises(FormatError, match="holds other bytes"):
        read_arpa(path)
    monkeypatch.setattr("nextword.formats.gz._BOMB_SIZE", 1 << 20)
    path.write_bytes(gzip.compress(bytes(1 << 24)))
    with pytest.raises(FormatError, match="unpacks to more than"):
        read_arpa(path)


def test_absurd_counts_allocate_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for n in (1, 2, 3):
        with pytest.raises(FormatError, match="promises"):
            read_arpa(put(tmp_path, re.sub(rf"ngram {n}=\d", f"ngram {n}=9{'9' * 25}", GOOD)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


@pytest.mark.parametrize("plain", [True, False])
def test_mutated_files_raise_only_our_errors(tmp_path: Path, plain: bool) -> None:
    generator = random.Random(11)
    original = GOOD.encode()
    path = tmp_path / "x.arpa"
    fine = 0
    for _ in range(400):
        data = bytearray(original)
        for _ in range(generator.randrange(1, 4)):
            start = generator.randrange(len(data))
            if generator.random() < 0.5:
                data[start : start + generator.randrange(4)] = generator.choice(
                    [b"", b"\n", b"\t", b" ", b"-", b"9", b"e9", b"\\", b"\xff", b"\0", b"nan", b"<s>", b"\r"]
                )
            else:
                stop = generator.randrange(len(data))
                data[start : start + 5] = data[stop : stop + generator.randrange(30)]
        path.write_bytes(data)
        try:
            read_arpa(path, plain=plain)
            fine += 1
        except FormatError:
            pass
    assert 0 < fine < 400


def test_both_paths_agree_on_what_is_a_fault(tmp_path: Path) -> None:
    generator = random.Random(12)
    path = tmp_path / "x.arpa"
    for _ in range(300):
        data = bytearray(GOOD.encode())
        start = generator.randrange(60, len(data))
        data[start : start + generator.randrange(3)] = generator.choice(
            [b"", b"\n", b"\t", b" ", b"-", b"9", b"e9", b"E+1", b".", b"+", b"inf", b"_", b"\r", b"<unk> "]
        )
        path.write_bytes(data)
        results = []
        for plain in (True, False):
            try:
                model = read_arpa(path, plain=plain)
                results.append(
                    [
                        model.trie.sizes,
                        model.words,
                        *(level.probs.round(6).tolist() for level in model.trie.levels),
                    ]
                )
            except NextwordError as error:
                results.append([str(error)])
        assert results[0] == results[1], bytes(data[start - 10 : start + 10])
