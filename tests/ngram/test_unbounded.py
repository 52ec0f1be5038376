"""The unbounded n-gram: brute force, the contract, the compiled twin, its files and its errors."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from event_streams import result_of
from hypothesis import given, settings
from hypothesis import strategies as st
from joined_rows import check_joined, states_after
from packed_texts import pack

from nextword.core.contracts import END, START, LanguageModel, PackedScorer
from nextword.core.errors import ConfigError, DamagedError, NextwordError
from nextword.core.family import Budget, Family
from nextword.ngram import unbounded
from nextword.ngram.unbounded import FAMILY, UnboundedSettings
from nextword.store.reading import open_run
from nextword.store.writing import new_run

V = 6
FILES = ["ids", "order", "shared", "starts", "marks", "seconds"]
SMOOTHINGS = ["absolute", "witten-bell", "none"]
sentence = st.lists(st.sampled_from([0, 3, 4]), max_size=8)  # word 5 is never seen
texts = st.lists(sentence, min_size=1, max_size=8).flatmap(
    lambda some: st.lists(st.sampled_from(some), min_size=1, max_size=14)
)
contexts = st.lists(st.sampled_from([0, 3, 4, 5]), max_size=9)
choices = st.builds(
    UnboundedSettings, smoothing=st.sampled_from(SMOOTHINGS), backoff_levels=st.integers(1, 4),
    discount=st.sampled_from([0.0, 0.6]),
)  # fmt: skip


def build(sentences, **given):
    return unbounded.build(pack(sentences), V, UnboundedSettings(**given))


def brute(sentences, context):
    """The longest suffix of the context that is followed by something, and by what."""
    for length in range(len(context), -1, -1):
        found, wanted = Counter(), context[len(context) - length :]
        for s in sentences:
            line = [START, *s, END]
            for at in range(len(line) - length):
                if line[at : at + length] == wanted and line[at + length] != START:
                    found[line[at + length]] += 1
        if found:
            return length, found
    raise AssertionError


def reference(model, sentences, context):
    """p of every word by the equation at the head of the file, from brute counts."""
    longest, _ = brute(sentences, context)
    p = model.unigrams_V.copy()
    for k in [*range(1, min(longest, model.levels) + 1), *([longest] if longest > model.levels else [])]:
        _, found = brute(sentences, context[len(context) - k :])
        D, n, kinds = model.discounts[min(k, model.levels + 1) - 1], sum(found.values()), len(found)
        for w in range(V):
            taken = found[w] - D * (found[w] > 0)
            p[w] = (taken + (model.kind + D) * kinds * p[w]) / (n + model.kind * kinds)
    return p


def read(model, context, begin):
    state = model.start(1, begin=begin)
    return model.score(np.array([context], dtype=np.int64).reshape(1, -1), np.array([len(context)]), state)[1]


@given(texts, contexts, st.booleans(), st.integers(1, 4))
def test_pure_rule_is_the_share_after_the_longest_match(sentences, context, begin, levels):
    model = build(sentences, smoothing="none", backoff_levels=levels)
    length, found = brute(sentences, [START] * begin + context)
    p = np.exp(model.next(read(model, context, begin))[0])
    np.testing.assert_allclose(p, [found[w] / sum(found.values()) for w in range(V)], atol=1e-12)
    evidence = model.evidence([START] * begin + context, top=V)
    assert (evidence.length, evidence.count) == (length, sum(found.values()))
    assert dict(evidence.followers) == dict(found)
    assert [n for _, n in evidence.followers] == sorted(found.values(), reverse=True)


@given(texts, contexts, st.booleans(), choices)
def test_mixed_rule_follows_its_equation(sentences, context, begin, chosen):
    if chosen.smoothing == "none":
        return
    model = unbounded.build(pack(sentences), V, chosen)
    p = np.exp(model.next(read(model, context, begin))[0])
    np.testing.assert_allclose(p, reference(model, sentences, [START] * begin + context), atol=1e-12)
    assert p[0] > 0
    assert p[5] > 0


@given(texts, contexts, st.booleans(), choices)
def test_probabilities_sum_to_one_without_start(sentences, context, begin, chosen):
    model = unbounded.build(pack(sentences), V, chosen)
    p = np.exp(model.next(read(model, context, begin))[0])
    assert abs(p.sum() - 1) < 1e-9
    assert p[START] == 0


@given(texts, st.lists(contexts, min_size=1, max_size=4), st.booleans(), choices)
def test_step_equals_score(sentences, rows, end, chosen):
    model = unbounded.build(pack(sentences), V, chosen)
    rows = [row + [END] * end for row in rows]
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), lengths.max() + 1), 4)
    for b, row in enumerate(rows):
        ids[b, : len(row)] = row
    logp, last = model.score(ids, lengths)
    for b, row in enumerate(rows):
        state = model.start(1)
        now = model.next(state)
        for t, word in enumerate(row):
            assert logp[b, t] == pytest.approx(now[0, word], abs=1e-9)
            now, state = model.step(np.array([word]), state)
        np.testing.assert_allclose(model.next(model.reorder(last, np.array([b]))), now, atol=1e-9)
        assert not logp[b, len(row) :].any()


@given(
    text=texts, settings_=choices, data=st.data(),
    batches=st.lists(
        st.tuples(st.lists(contexts, min_size=1, max_size=3), st.booleans()), min_size=1, max_size=3
    ),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_rows_of_any_states_are_joined_and_taken_out_again(text, settings_, data, batches):
    model = unbounded.build(pack(text), V, settings_)
    read, begin = zip(*batches, strict=True)
    token = st.sampled_from([0, 3, 4, 5, END])
    rows = [data.draw(st.lists(token, min_size=1, max_size=3)) for each in read for _ in each]
    check_joined(model, states_after(model, read, begin), rows, 0.0)


@given(texts, contexts, st.integers(0, 9), choices)
def test_score_in_pieces_equals_score(sentences, context, cut, chosen):
    model = unbounded.build(pack(sentences), V, chosen)
    row = np.array([[*context, END, 3, 3]])
    whole, _ = model.score(row, np.array([row.shape[1]]))
    cut = min(cut, row.shape[1])
    first, state = model.score(row[:, :cut], np.array([cut]))
    second, _ = model.score(row[:, cut:], np.array([row.shape[1] - cut]), state)
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), whole, atol=1e-9)


@given(texts, texts, choices)
def test_packed_stream_equals_rows(sentences, others, chosen):
    model = unbounded.build(pack(sentences), V, chosen)
    parts = []
    for s in others:
        parts += [0.0, *model.score(np.array([[*s, END]]), np.array([len(s) + 1]))[0][0]]
    np.testing.assert_allclose(model.score_packed(pack(others)), parts, atol=1e-9)


@given(texts, texts, choices)
@settings(max_examples=60, deadline=None)  # the first call compiles
def test_compiled_searches_equal_the_plain_ones(sentences, others, chosen):
    from nextword.ngram.suffix import stream

    model = unbounded.build(pack(sentences), V, chosen)
    agree(model._packed(pack(others)), stream.packed(model, pack(others)))
    rows = [[*s, END] for s in others]
    lengths = np.array([len(row) - 1 for row in rows])  # before END, so that the states differ
    ids = np.array([row + [5] * (12 - len(row)) for row in rows])
    p, state = stream.score(model, ids, lengths, model.start(len(rows)))
    logp, plain = model.score(ids, lengths)
    np.testing.assert_allclose(np.log(np.where(p > 0, p, 1)), np.where(p > 0, logp, 0), atol=1e-9)
    np.testing.assert_allclose(model.next(state), model.next(plain), atol=1e-9)


@pytest.mark.parametrize("levels", [1, 3])
def test_compiled_searches_equal_the_plain_ones_in_copied_documents(levels):
    from nextword.ngram.suffix import stream

    words = np.random.default_rng(0).integers(3, 5, size=700).tolist()
    model = build([words, words[100:] + words[:300], [3] * 400], backoff_levels=levels)
    asked = pack([[*words[50:400], 5, *words[401:450]], words[:80], [3] * 350 + [4]])
    plain = model._packed(asked)
    assert plain[1].lengths.max() == 351  # START too
    agree(plain, stream.packed(model, asked))


def agree(plain, compiled):
    np.testing.assert_allclose(plain[0], compiled[0], rtol=1e-12)
    for name in ("lengths", "totals", "hits"):
        np.testing.assert_array_equal(getattr(plain[1], name), getattr(compiled[1], name))


@given(texts, st.lists(st.tuples(st.booleans(), contexts, st.integers(0, 5)), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)  # the first call compiles
def test_many_queries_at_once_are_the_longest_matches(sentences, asked):
    model = build(sentences, backoff_levels=2)
    asked = [([START] * begin + context, END if word == START else word) for begin, context, word in asked]
    rows = [np.array(context, dtype=np.int32) for context, _ in asked]
    found = model.match(rows, np.array([word for _, word in asked]))
    for i, (context, word) in enumerate(asked):
        length, followers = brute(sentences, context)
        assert found.lengths[i] == length
        assert (found.totals[i], found.hits[i]) == (sum(followers.values()), followers[word])


def test_family_and_model_offer_the_contracts():
    model = build([[3]])
    assert isinstance(FAMILY, Family)
    assert FAMILY.holds_text
    assert isinstance(model, LanguageModel)
    assert isinstance(model, PackedScorer)
    assert model.next(model.start(0)).shape == (0, V)
    assert "4 ids" in repr(build([[3, 4]]))


def test_ids_outside_the_vocabulary_are_refused():
    with pytest.raises(ValueError, match="token ids"):
        build([[3]]).score_packed(np.array([START, V, END]))


def test_unknown_words_have_no_probability_in_a_closed_vocabulary():
    model = unbounded.build(pack([[3, 4]]), V, UnboundedSettings(), closed=True)
    p = np.exp(model.next(model.start(1))[0])
    assert p[0] == 0
    assert abs(p.sum() - 1) < 1e-9


tokenizer = SimpleNamespace(vocab_size=V, closed=False)


def fitted(chosen=None, memory=0):
    ids = pack([[3, 4], [3, 5, 4]])
    return result_of(FAMILY.fit(ids, tokenizer, chosen or UnboundedSettings(), Budget(memory=memory)))


def saved(path, model):
    with new_run(path) as folder:
        FAMILY.save(model, folder)
    return open_run(path)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_saved_model_gives_the_same_numbers(tmp_path, smoothing):
    chosen = UnboundedSettings(smoothing=smoothing)
    model = fitted(chosen)
    again = FAMILY.load(saved(tmp_path / "run", model), chosen, tokenizer)
    np.testing.assert_array_equal(again.next(read(again, [3], True)), model.next(read(model, [3], True)))


def test_memory_that_is_too_small_is_said_in_one_sentence():
    with pytest.raises(ConfigError, match=r"'train.memory' is 1 MB.* needs .* MB to build"):
        fitted(memory=1_000_000)
    assert fitted(memory=10**9).vocab_size == V


def test_texts_that_places_cannot_number_are_refused():
    with pytest.raises(ConfigError, match="ngram"):
        unbounded._check_size(2**32, V, 0)


@pytest.mark.parametrize("facts", ["{}", '{"levels": 3, "closed": false, "discounts": []}', "[]"])
def test_facts_that_do_not_fit_are_damage(tmp_path, facts):
    with new_run(tmp_path / "run") as folder:
        for name, array in fitted().text.named().items():
            folder.write_array(name, array)
        folder.write("unbounded.json", facts)
    with pytest.raises(DamagedError, match=r"unbounded\.json"):
        FAMILY.load(open_run(tmp_path / "run"), UnboundedSettings(), tokenizer)


@given(st.sampled_from(FILES), st.integers(0, 2**32 - 1), st.data())
@settings(max_examples=80, deadline=None)
def test_damaged_arrays_give_our_error_or_a_number_but_never_a_crash(tmp_path_factory, name, value, data):
    from nextword.ngram.suffix import stream

    path = tmp_path_factory.mktemp("damaged") / "run"
    model = build([[3, 4, 3], [3, 0, 4, 3, 4], [3, 0, 4, 3, 4]], backoff_levels=2)
    run = saved(path, model)
    file = path / f"unbounded.{name}.npy"
    array = np.load(file)
    at = data.draw(st.integers(0, len(array) - 1))
    array[at] = np.array(value).astype(array.dtype)
    np.save(file, array)
    asked = pack([[3, 4, 3, 4], [3, 0, 4, 3, 4, 5], [4, 0]])
    searches = (
        lambda loaded: loaded._packed(asked),
        lambda loaded: stream.packed(loaded, asked),
        lambda loaded: loaded.match([np.array([3, 0, 4]), np.array([4, 3])], np.array([3, 4])),
    )
    for packed in searches:
        try:
            loaded = FAMILY.load(run, UnboundedSettings(backoff_levels=2), tokenizer)
            packed(loaded)
            loaded.next(loaded.start(2))
        except NextwordError:
            pass
