"""Compiled single calls against the plain walk: the same numbers, lengths and states."""

from __future__ import annotations

import copy
import pickle
import random
import weakref
from pathlib import Path

import numpy as np
import pytest

import nextword.kenlm as kenlm
from nextword.core.contracts import END, START
from nextword.core.errors import DamagedError
from nextword.formats.arpa.files import write_arpa
from nextword.formats.calls import Calls
from nextword.ngram.arrays import Level, Trie
from nextword.ngram.estimation import build
from nextword.ngram.settings import NgramSettings

ODD = [
    "",
    " ",
    "<s> w1",
    "w1 </s> w2",
    "zyzzy",
    "w1 " * 300,
    " w1\t w2\n\v w3 ",
    "internationalisation w1 internationalisatiom",
    "日本語 w1",
]


def lines(seed: int, count: int, words: int) -> list[str]:
    generator = random.Random(seed)
    names = [f"w{i}" for i in range(words)] + ["internationalisation", "日本語"]
    weights = [1 / (i + 1) for i in range(len(names))]
    return [" ".join(generator.choices(names, weights, k=generator.randrange(0, 12))) for _ in range(count)]


def trie_of(text: list[str], order: int) -> tuple[Trie, list[str]]:
    words: dict[str, int] = {}
    ids: list[int] = []
    for line in text:
        ids += [START, *(words.setdefault(word, 3 + len(words)) for word in line.split()), END]
    return build(np.array(ids, np.int32), 3 + len(words), NgramSettings(order=order)).trie, list(words)


@pytest.fixture(scope="module", params=[1, 2, 4])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("model") / "model.arpa"
    write_arpa(found, *trie_of(lines(1, 200, 40), request.param))
    return found


def read_at_once(path: Path) -> kenlm.Model:
    config = kenlm.Config()
    config.load_method = kenlm.LoadMethod.READ
    return kenlm.Model(path, config)


def mapped(path: Path) -> kenlm.Model:
    model = kenlm.Model(path)
    model._steps.compile()
    return model


def plain(path: Path) -> kenlm.Model:
    model = kenlm.Model(path)
    model._steps.plain_left = 10**9
    return model


@pytest.mark.parametrize("compiled", [mapped, read_at_once])
def test_sentences_score_as_in_plain_python(path: Path, compiled: object) -> None:
    assert callable(compiled)
    one, other = compiled(path), plain(path)
    for line in [*lines(2, 60, 50), *ODD]:
        for bos in (True, False):
            for eos in (True, False):
                assert one.score(line, bos, eos) == pytest.approx(other.score(line, bos, eos), abs=1e-6)
                mine, theirs = (list(m.full_scores(line.encode(), bos, eos)) for m in (one, other))
                assert [row[1:] for row in mine] == [row[1:] for row in theirs]
                assert [row[0] for row in mine] == pytest.approx([row[0] for row in theirs], abs=1e-6)
    assert one._steps.calls is not None
    assert other._steps.calls is None


@pytest.mark.parametrize("compiled", [mapped, read_at_once])
def test_words_and_states_are_those_of_plain_python(path: Path, compiled: object) -> None:
    assert callable(compiled)
    one, other = compiled(path), plain(path)
    for line in lines(3, 40, 50):
        state, twin = kenlm.State(), kenlm.State()
        one.BeginSentenceWrite(state)
        other.BeginSentenceWrite(twin)
        for word in [*line.split(), "w1 w2", "", "</s>"]:
            assert state == twin
            assert hash(state) == hash(twin)
            found, expected = one.BaseFullScore(state, word, state), other.BaseFullScore(twin, word, twin)
            assert found.log_prob == pytest.approx(expected.log_prob, abs=1e-6)
            assert (found.ngram_length, found.oov) == (expected.ngram_length, expected.oov)


def test_states_of_plain_python_go_on_in_compiled_code(path: Path) -> None:
    model, twin = kenlm.Model(path), plain(path)
    states = [kenlm.State() for _ in range(6)]
    model.BeginSentenceWrite(states[0])
    model.NullContextWrite(states[1])
    for i in range(1, 4):
        model.BaseScore(states[i], f"w{i}", states[i + 1])
    expected = [twin.score(text, bos, False) for text, bos in (("w3", True), ("w3", False), ("", False))]
    model._steps.compile()
    assert model._steps.calls is not None
    assert model.BaseScore(states[0], "w3", states[5]) == pytest.approx(expected[0], abs=1e-6)
    assert model.BaseScore(states[1], "w3", states[5]) == pytest.approx(expected[1], abs=1e-6)
    whole = twin.score("w1 w2 w3 w4", False, False) - twin.score("w1 w2 w3", False, False)
    assert model.BaseScore(states[4], "w4", states[5]) == pytest.approx(whole, abs=1e-6)
    with pytest.raises(ValueError, match="belongs to another model"):
        read_at_once(path).BaseScore(states[4], "w4", states[5])


def test_n_grams_are_loaded_once_as_many_words_were_read(path: Path) -> None:
    model, twin = mapped(path), plain(path)
    assert model._steps.calls is not None
    searching, state, after = model._steps.calls, kenlm.State(), kenlm.State()
    model.BeginSentenceWrite(state)
    text = lines(4, 3, 40)
    expected = [twin.score(line) for line in text]
    for _ in range(sum(model._model.trie.sizes)):
        assert [model.score(line) for line in text] == pytest.approx(expected, abs=1e-6)
        if model._steps.calls is not searching:
            break
    assert model._steps.calls is not searching
    assert model.BaseScore(state, "w1", after) == pytest.approx(twin.score("w1", True, False), abs=1e-6)


def test_offsets_outside_their_array_are_an_error() -> None:
    trie, words = trie_of(lines(1, 50, 10), 2)
    first = trie.levels[0]
    assert first.children is not None
    damaged = Level(first.words, first.probs, first.backoffs, first.children + np.uint32(1 << 30))
    calls = Calls(Trie((damaged, trie.levels[1])), [word.encode() for word in words], {})
    assert np.isnan(calls.score(calls.head, b"w1 w2", True, True))
    assert calls.full_scores(b"w1 w2", True, True) is None
    with pytest.raises(DamagedError, match="point outside them"):
        calls.read([3, 4])


def test_many_states_keep_their_own_contexts(path: Path) -> None:
    """States share blocks of memory; those that are dropped leave the others alone."""
    model, twin = read_at_once(path), plain(path)
    start, from_start = kenlm.State(), kenlm.State()
    model.BeginSentenceWrite(start)
    twin.BeginSentenceWrite(from_start)
    kept, twins = [], []
    for at in range(700):
        state, other = kenlm.State(), kenlm.State()
        model.BaseScore(start, f"w{at % 40}", state)
        if at % 3 == 0:  # the others are freed
            twin.BaseScore(from_start, f"w{at % 40}", other)
            kept.append(copy.copy(state) if at % 2 else state)
            twins.append(other)
    del state
    assert [hash(each) for each in kept] == [hash(each) for each in twins]
    assert kept == twins
    for each, other in zip(kept[::50], twins[::50], strict=True):
        after, expected = kenlm.State(), kenlm.State()
        found = model.BaseScore(each, "w2", after)
        assert found == pytest.approx(twin.BaseScore(other, "w2", expected), abs=1e-6)
        assert (after, each) == (expected, other)


@pytest.mark.parametrize("compiled", [mapped, read_at_once])
def test_words_in_any_form_are_read_as_in_plain_python(path: Path, compiled: object) -> None:
    assert callable(compiled)
    model, twin = compiled(path), plain(path)
    state, other = kenlm.State(), kenlm.State()
    long = ("internationalisation", "internationalisatiom", "internationalisation\nw1")
    for word in ("w1", b"w1", "zyzzy", "w1 w2", "", "日本語", "日本語".encode(), "<s>", "</s>", "w\0", *long):
        model.BeginSentenceWrite(state)
        twin.BeginSentenceWrite(other)
        found = model.BaseScore(state, word, state)
        assert found == pytest.approx(twin.BaseScore(other, word, other), abs=1e-6)
        assert state == other
        assert model.BaseScore(in_state=state, word=word, out_state=state) == pytest.approx(
            twin.BaseScore(other, word, other), abs=1e-6
        )


@pytest.mark.parametrize("model_of", [plain, mapped, read_at_once])
def test_wrong_arguments_are_errors_and_change_nothing(path: Path, model_of: object) -> None:
    assert callable(model_of)
    model = model_of(path)
    state = kenlm.State()
    model.BeginSentenceWrite(state)
    for _ in range(2):  # the first call of compiled code makes it take over
        for args, said in (
            ((state, 5, state), "Cannot convert <class 'int'> to string"),
            ((state, "w1", None), "a State is needed, not NoneType"),
            ((b"", "w1", state), "a State is needed, not bytes"),
            ((bytearray(99), "w1", state), "a State is needed, not bytearray"),
            ((state, "w1"), "missing 1 required positional argument"),
        ):
            with pytest.raises(TypeError, match=said):
                model.BaseScore(*args)
        with pytest.raises(UnicodeEncodeError):
            model.BaseScore(state, "\ud800", state)
        fresh = kenlm.State()
        model.BeginSentenceWrite(fresh)
        assert state == fresh
        empty = kenlm.State()
        if model._steps.calls is not None:  # it must grow, and cannot while somebody looks at it
            with memoryview(empty), pytest.raises(BufferError):
                model.BaseScore(state, "w1", empty)
        model.BaseScore(state, "w1", empty)


def test_compiled_function_takes_the_place_of_the_method_but_not_of_a_users(path: Path) -> None:
    class Doubled(kenlm.Model):
        def BaseScore(self, in_state, word, out_state):  # type: ignore[no-untyped-def]  # noqa: N802
            return 2 * super().BaseScore(in_state, word, out_state)

    config = kenlm.Config()
    config.load_method = kenlm.LoadMethod.READ
    model, doubled = kenlm.Model(path, config), Doubled(path, config)
    state, after = kenlm.State(), kenlm.State()
    model.BeginSentenceWrite(state)
    score = model.BaseScore(state, "w1", after)
    assert type(model.BaseScore).__name__ == "builtin_function_or_method"
    assert model.BaseScore(state, "w1", after) == score
    for _ in range(2):
        doubled.BeginSentenceWrite(state)
        assert doubled.BaseScore(state, "w1", after) == 2 * score
        assert doubled.BaseFullScore(state, "w1", after).log_prob == score


def test_a_function_and_a_state_outlive_their_model(path: Path) -> None:
    model = mapped(path)
    state, after = kenlm.State(), kenlm.State()
    model.BeginSentenceWrite(state)
    expected = model.BaseScore(state, "w1", after)
    step, gone = model.BaseScore, weakref.ref(model._steps.calls)
    often = sum(model._model.trie.sizes)
    del model
    assert all(abs(step(state, "w1", after) - expected) < 1e-6 for _ in range(often))
    assert gone() is None  # in between, all n-grams were loaded
    del step
    again = copy.copy(after)
    assert (after == again, hash(after) == hash(again), after != again) == (True, True, False)
    with pytest.raises(ValueError, match="belongs to another model"):
        read_at_once(path).BaseScore(after, "w1", after)


def test_states_are_like_values(path: Path) -> None:
    model = read_at_once(path)
    states = [kenlm.State() for _ in range(3)]
    model.BeginSentenceWrite(states[0])
    model.NullContextWrite(states[1])
    model.BaseScore(states[0], "w1", states[2])
    assert all(states)
    assert sorted(states)[0] == states[1] == kenlm.State()
    assert states[1] <= states[2] >= states[1]
    assert not states[1] > states[1]
    assert repr(kenlm.State()) == "<State of 0 words>"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(states[0])
