"""`nextword.kenlm` against the kenlm module: one script, two modules, the same numbers."""

from __future__ import annotations

import copy
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nextword.kenlm as ours
from nextword.core.contracts import END, START
from nextword.core.errors import NextwordError
from nextword.formats import walk
from nextword.formats.arpa.files import read_arpa, write_arpa
from nextword.ngram.estimation import build
from nextword.ngram.settings import NgramSettings

SCRIPT = Path(__file__).with_name("kenlm_script.py")
LINES = [
    "the cat sat on the mat", "the dog sat on the cat", "a cat saw the dog", "", "the mat",
    "on the mat the cat sat", "naïve 日本語 words", "a dog saw a mat on the cat", "the cat saw the cat",
]  # fmt: skip


def write_model(path: Path, lines: list[str], order: int, smoothing: str = "modified-kneser-ney") -> Path:
    words: dict[str, int] = {}
    ids: list[int] = []
    for line in lines:
        ids += [START, *(words.setdefault(word, 3 + len(words)) for word in line.split()), END]
    settings = NgramSettings(order=order, smoothing=smoothing)
    model = build(np.array(ids, dtype=np.int32), 3 + len(words), settings)
    write_arpa(path, model.trie, list(words))
    return path


def run_script(module: str, model: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), module, str(model)], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def assert_same_lines(ours_: list[str], theirs: list[str]) -> None:
    assert len(ours_) == len(theirs)
    for mine, other in zip(ours_, theirs, strict=True):
        for a, b in zip(mine.split(" "), other.split(" "), strict=True):
            if a != b:
                assert float(a) == pytest.approx(float(b), abs=1e-5, rel=1e-5), (mine, other)


@pytest.mark.agree
@pytest.mark.needs("kenlm")
@pytest.mark.parametrize("order", [2, 3, 5])
def test_a_script_for_kenlm_prints_the_same_numbers(tmp_path: Path, order: int) -> None:
    model = write_model(tmp_path / "model.arpa", LINES, order)
    assert len([line for line in SCRIPT.read_text().split("\n") if line.strip()]) >= 40
    assert_same_lines(run_script("nextword.kenlm", model), run_script("kenlm", model))


def random_lines(seed: int, count: int, words: int) -> list[str]:
    generator = random.Random(seed)
    names = [f"w{i}" for i in range(words)]
    weights = [1 / (i + 1) for i in range(words)]
    return [" ".join(generator.choices(names, weights, k=generator.randrange(0, 12))) for _ in range(count)]


@pytest.mark.agree
@pytest.mark.needs("kenlm")
@pytest.mark.parametrize("smoothing", ["modified-kneser-ney", "witten-bell", "katz"])
def test_words_lengths_and_states_agree_on_random_text(tmp_path: Path, smoothing: str) -> None:
    import kenlm

    path = str(write_model(tmp_path / "model.arpa", random_lines(1, 300, 60), 4, smoothing))
    one, other = ours.Model(path), kenlm.Model(path)
    mine, theirs = [], []
    for line in random_lines(2, 120, 70):
        for a, b in zip(one.full_scores(line), other.full_scores(line), strict=True):
            assert a[0] == pytest.approx(b[0], abs=1e-5)
            assert a[1:] == b[1:]
        assert one.score(line) == pytest.approx(other.score(line), abs=1e-4)
        state, there = ours.State(), kenlm.State()
        one.BeginSentenceWrite(state)
        other.BeginSentenceWrite(there)
        for word in line.split():
            next_, far = ours.State(), kenlm.State()
            one.BaseScore(state, word, next_)
            other.BaseScore(there, word, far)
            state, there = next_, far
            mine.append(state)
            theirs.append(there)
    generator = random.Random(3)
    for _ in range(20_000):
        i, j = generator.randrange(len(mine)), generator.randrange(len(mine))
        assert (mine[i] == mine[j]) == (theirs[i] == theirs[j])
    assert len(set(mine)) == len(set(theirs))


@pytest.mark.agree
@pytest.mark.needs("kenlm")
def test_files_without_unknown_and_pruned_ones_agree(tmp_path: Path) -> None:
    import kenlm

    unigrams = "-99\t<s>\t-0.3\n-1\t</s>\n-0.6\ta\t-0.2\n-0.7\tb\t-0.1\n-0.8\tc\n"
    bigrams = "-0.4\t<s> a\t-0.5\n-0.3\ta b\n-0.2\tb c\t-0.05\n-0.9\ta a\n-0.9\tb b\n-0.9\tc b\n-0.9\tc c\n"
    trigrams = "-0.1\t<s> a b\n-0.15\ta b c\n-0.25\tb c a\n"  # 'c a' is not among the 2-grams
    text = "\\data\\\nngram 1=5\nngram 2=7\nngram 3=3\n\n\\1-grams:\n" + unigrams
    text += "\n\\2-grams:\n" + bigrams + "\n\\3-grams:\n" + trigrams + "\n\\end\\\n"
    path = tmp_path / "model.arpa"
    path.write_text(text)
    one, other = ours.Model(str(path)), kenlm.Model(str(path))
    for line in ("a b c a", "b c a b", "x", "a x b", "c a c a", "<s> a", "b </s> a"):
        for a, b in zip(one.full_scores(line), other.full_scores(line), strict=True):
            assert a[0] == pytest.approx(b[0], abs=1e-5)
            assert a[1:] == b[1:]


@pytest.mark.agree
def test_what_lmplz_writes_reads_with_equal_scores(tmp_path: Path) -> None:
    import shutil

    lmplz = os.environ.get("NEXTWORD_LMPLZ") or shutil.which("lmplz")
    if lmplz is None:
        pytest.skip("needs lmplz, which is not installed (or name it in NEXTWORD_LMPLZ)")
    kenlm = pytest.importorskip("kenlm")
    lines = random_lines(5, 3000, 400)
    path = tmp_path / "lmplz.arpa"
    with open(path, "wb") as out:
        command = [lmplz, "-o", "3", "-S", "100M", "-T", str(tmp_path), "--discount_fallback"]
        subprocess.run(
            command, input="\n".join(lines).encode(), stdout=out, stderr=subprocess.DEVNULL, check=True
        )
    one, other = ours.Model(str(path)), kenlm.Model(str(path))
    write_arpa(tmp_path / "again.arpa", read_arpa(path).trie, read_arpa(path).vocabulary)
    again = kenlm.Model(str(tmp_path / "again.arpa"))
    for line in random_lines(6, 300, 450):
        for a, b, c in zip(*(list(m.full_scores(line)) for m in (one, other, again)), strict=True):
            assert a[0] == pytest.approx(b[0], abs=1e-5)
            assert c[0] == pytest.approx(b[0], abs=1e-5)
            assert a[1:] == b[1:] == c[1:]


# ---- what goes beyond kenlm, without it ------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ours.Model:
    return ours.Model(write_model(tmp_path_factory.mktemp("model") / "model.arpa", LINES, 3))


def test_many_sentences_score_as_one_by_one(model: ours.Model) -> None:
    lines = [*LINES, "the zyzzy", "<s> the", "the </s> cat"]
    for bos in (True, False):
        for eos in (True, False):
            expected = [model.score(line, bos, eos) for line in lines]
            assert model.score_many(lines, bos, eos) == pytest.approx(expected, abs=1e-9)
    assert model.score_many([]) == []


def test_much_text_at_once_scores_as_line_by_line(model: ours.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [*LINES, "the zyzzy", " the  cat ", "", "x"]
    expected = [model.score(line) for line in lines]
    monkeypatch.setattr(ours, "PLAIN_LETTERS", 10)
    assert model.score_many(lines) == pytest.approx(expected, abs=1e-9)
    assert model.score_many([line.encode() for line in lines]) == pytest.approx(expected, abs=1e-9)
    assert model.score_many(["the\ncat", "a\r cat"]) == pytest.approx(
        [model.score("the cat"), model.score("a cat")]
    )


def test_words_have_numbers(model: ours.Model) -> None:
    assert [model.vocab_index(word) for word in ("<unk>", "<s>", "</s>", "the", b"cat", "zyzzy")] == [
        0,
        1,
        2,
        3,
        4,
        0,
    ]


def test_remembered_steps_are_bounded_and_change_nothing(
    model: ours.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [model.score(line) for line in LINES]
    monkeypatch.setattr(walk, "MAX_STEPS", 5)
    fresh = ours.Model(model.path)
    state, other = ours.State(), ours.State()
    fresh.BeginSentenceWrite(state)
    for _ in range(3):
        assert [fresh.score(line) for line in LINES] == expected
        fresh.BaseScore(state, "the", other)
        state, other = other, state


def test_the_compiled_scorer_takes_over_with_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ours, "PLAIN_LETTERS", 100)
    path = write_model(tmp_path / "x.arpa", random_lines(7, 200, 40), 4)
    compiled, plain = ours.Model(path), ours.Model(path)
    compiled.score("w1 " * 50)
    for line in [*random_lines(8, 100, 50), "", "<s> w1", "w1 </s> w2", "w1 " * 500, "zyzzy"]:
        for bos in (True, False):
            for eos in (True, False):
                plain._steps.plain_left = 10**9
                assert compiled.score(line, bos, eos) == pytest.approx(plain.score(line, bos, eos), abs=1e-6)
    assert compiled._steps.plain_left <= 0


def test_states_copy_pickle_by_path_and_belong_to_their_model(model: ours.Model) -> None:
    state, other = ours.State(), ours.State()
    assert state == other  # both empty
    model.BeginSentenceWrite(state)
    assert copy.deepcopy(state) == state != other
    assert (state == 3) is False
    with pytest.raises(TypeError):
        _ = state < 3  # type: ignore[operator]
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="belongs to another model"):
        again.BaseScore(state, "the", other)
    assert repr(model.BaseFullScore(ours.State(), "the", other)).startswith("FullScoreReturn(-")
    assert repr(again) == "<Model from b'model.arpa'>"


def test_errors_are_both_os_errors_and_ours(tmp_path: Path) -> None:
    for error in (OSError, NextwordError):
        with pytest.raises(error, match=r"Cannot read model 'nowhere' \(there is no run 'nowhere'"):
            ours.Model("nowhere")
    (tmp_path / "x.arpa").write_text("mmap lm http://kheafield.com/code format version 5\n")
    with pytest.raises(OSError, match="this is a KenLM binary"):
        ours.Model(tmp_path / "x.arpa")
    with pytest.raises(TypeError, match="Cannot convert <class 'int'> to string"):
        ours.Model(3)  # type: ignore[arg-type]


def test_literal_specials_are_written_with_a_backslash(tmp_path: Path) -> None:
    model = ours.Model(write_model(tmp_path / "x.arpa", ["a <s> b", "a <unk> b", "\\<s> a"], 2))
    assert "\\<s>" in model
    assert "\\\\<s>" in model
    assert "<unk>" not in model
    assert model.vocab_index("<s>") == START


SINGLE = """
import sys
import nextword.kenlm as kenlm
model = kenlm.Model(sys.argv[1])
print(model.score("the cat"), model.score_many(["the cat"]))
assert "numba" not in sys.modules and "torch" not in sys.modules, "too much was imported"
"""


def test_single_sentences_need_no_compiler(tmp_path: Path) -> None:
    path = write_model(tmp_path / "x.arpa", LINES, 3)
    subprocess.run([sys.executable, "-c", SINGLE, str(path)], check=True, capture_output=True)


@pytest.mark.parametrize("smoothing", ["modified-kneser-ney", "add"])
def test_runs_score_as_their_model_does(tmp_path: Path, smoothing: str) -> None:
    import nextword

    text = tmp_path / "text.txt"
    text.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    run = nextword.train(
        str(text),
        model="ngram",
        out=str(tmp_path / "run"),
        set={"model.order": 3, "model.smoothing": smoothing},
    )
    model = ours.Model(tmp_path / "run")
    for line in ("the cat sat", "zyzzy the", "a dog"):
        nats = sum(token.logprob for token in run.score(line).tokens)
        assert model.score(line) * np.log(10) == pytest.approx(nats, abs=1e-5)
        assert sum(log10 for log10, _, _ in model.full_scores(line)) == pytest.approx(model.score(line))
        assert model.score_many([line]) == pytest.approx([model.score(line)])
    assert model.order == 3
