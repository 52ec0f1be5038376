"""Whole words: the sums found by the search are those of an exhaustive enumeration."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_models import TableModel

from nextword.core import catalog
from nextword.core.contracts import END, START, Block
from nextword.decode.spelling import words_of
from nextword.decode.words import next_words
from nextword.text.bytes import ByteTokenizer
from nextword.text.characters import CharacterTokenizer
from nextword.text.settings import TextSettings
from nextword.text.subwords import SubwordTokenizer
from nextword.text.words import WordTokenizer

TEXT = b"aba ab baa\nab aba ab\nbaa aba\n" * 3


def subwords(name: str) -> SubwordTokenizer:
    settings = TextSettings(tokenizer=name, size=265)
    return SubwordTokenizer.fit([Block(TEXT, True)], settings)


TOKENIZERS = {
    "characters": CharacterTokenizer("ab \n"),
    "bytes": ByteTokenizer(),
    "bpe": subwords("bpe"),
    "unigram": subwords("unigram"),
}


def table_model(tokenizer, seed: int = 0) -> TableModel:
    """Random p(token | last token) over END and the tokens that spell the text; a word ends soon."""
    V = tokenizer.vocab_size
    allowed = [i for i in range(V) if i > END and re.fullmatch(rb"[ab \n]+", tokenizer.data(i))]
    table_VV = np.zeros((V, V))
    weights = np.random.default_rng(seed).gamma(1.0, size=(V, len(allowed) + 1)) + 0.05
    table_VV[:, [END, *allowed]] = weights
    spaces = [i for i in allowed if tokenizer.data(i)[:1].isspace()]
    table_VV[:, [END, *spaces]] *= 3.0
    return TableModel(table_VV / table_VV.sum(axis=1, keepdims=True))


def enumerate_words(
    model, tokenizer, prompt: str, must_break: bool, least: float = 1e-6
) -> tuple[Counter, float]:
    """Follow every sequence of tokens until its first word is whole; also what was too rare to follow."""
    table, found, missed = np.exp(model.logp_VV), Counter(), 0.0
    read = [int(i) for i in tokenizer.encode(prompt)]
    stack = [(1.0, read[-1] if read else START, "")]
    while stack:
        p, last, text = stack.pop()
        for token in np.flatnonzero(table[last]).tolist():
            mass, after = p * table[last, token], text + tokenizer.decode([token])
            if must_break and not text and token != END and not after[0].isspace():
                continue  # the last word of the prompt would go on
            whole = re.match(r"\s*(\S+)(\s)", after) or (token == END and re.match(r"\s*(\S+)()", after))
            if whole:
                found[whole[1]] += mass
            elif token == END:
                found["</s>"] += mass
            elif mass < least:
                missed += mass
            else:
                stack.append((mass, token, after))
    total = sum(found.values()) + missed
    return Counter({word: mass / total for word, mass in found.items()}), missed / total


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize(("prompt", "part"), [("", None), ("ab", False)])
def test_words_are_those_of_an_exhaustive_enumeration(name, prompt, part):
    tokenizer = TOKENIZERS[name]
    model = table_model(tokenizer)
    exact, missed = enumerate_words(model, tokenizer, prompt, must_break=bool(prompt))
    found = next_words(model, tokenizer, prompt, part)
    total = sum(word.probability for word in found.words) + found.end + found.left
    assert total == pytest.approx(1, abs=1e-9)
    assert found.end == pytest.approx(exact["</s>"], abs=found.left + missed)
    assert found.left < 0.2
    for word in found.words[:20]:
        assert exact[word.text] - missed - found.left <= word.probability <= exact[word.text] + missed + 1e-9


@pytest.mark.parametrize("name", TOKENIZERS)
def test_words_asked_for_are_spelled_in_every_way(name):
    tokenizer = TOKENIZERS[name]
    model = table_model(tokenizer)
    exact, missed = enumerate_words(model, tokenizer, "", must_break=False)
    found = next_words(model, tokenizer, "", words=["ab", "baa", "aaab", "xyz"])
    assert {word.text for word in found.words} == {"ab", "baa", "aaab"}
    for word in found.words:
        assert word.probability == pytest.approx(exact[word.text], abs=missed + 1e-6)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_part_of_a_word_is_completed_whatever_its_tokens(name):
    """p(word | its first letters) is p(word) over the sum of all words with these letters."""
    tokenizer = TOKENIZERS[name]
    model = table_model(tokenizer)
    exact, missed = enumerate_words(model, tokenizer, "", must_break=False)
    same = {word: p for word, p in exact.items() if word.startswith("ab")}
    found = next_words(model, tokenizer, "ab", part=True)
    assert found.part == "ab"
    assert sum(word.probability for word in found.words) + found.end + found.left == pytest.approx(
        1, abs=1e-9
    )
    assert all(word.text.startswith("ab") for word in found.words)
    if name in ("bpe", "unigram"):  # a word may also come after whitespace, which is no part of the prompt
        return
    for word in found.words[:5]:
        assert word.probability == pytest.approx(same[word.text] / sum(same.values()), abs=0.02 + missed)


def test_space_at_the_end_is_read_again_with_the_word_after_it():
    """After "ab " a model over subwords goes on with " baa", one token, as well as with " " and "baa"."""
    tokenizer = TOKENIZERS["bpe"]
    joined = [i for i in range(3, tokenizer.vocab_size) if re.fullmatch(rb" [ab]+", tokenizer.data(i))]
    assert joined, "the tokenizer has tokens with a space in front"
    V = tokenizer.vocab_size
    table_VV = np.zeros((V, V))
    table_VV[:, joined] = 1.0
    table_VV[:, END] = 1.0
    model = TableModel(table_VV / table_VV.sum(axis=1, keepdims=True))
    found = next_words(model, tokenizer, "ab ")
    assert {word.text for word in found.words} == {tokenizer.data(i).decode().strip() for i in joined}
    assert sum(word.probability for word in found.words) + found.left == pytest.approx(1, abs=1e-9)
    assert found.end == 0


def test_word_that_goes_on_with_a_letter_is_completed_and_another_is_not():
    tokenizer = TOKENIZERS["characters"]
    a, b, space, newline = (int(tokenizer.encode(each)[0]) for each in "ab \n")
    table_VV = np.zeros((7, 7))
    table_VV[:, [a, b, space, newline, END]] = 0.2
    table_VV[a, [a, b, space, newline, END]] = [0.0, 0.9, 0.1, 0.0, 0.0]  # after a mostly b
    table_VV[b, [a, b, space, newline, END]] = [0.1, 0.0, 0.8, 0.05, 0.05]
    model = TableModel(table_VV)
    part, ended = next_words(model, tokenizer, "b a"), next_words(model, tokenizer, "a b")
    assert (part.part, part.ended) == ("a", "")
    assert part.words[0].text == "ab"
    assert (ended.part, ended.ended) == ("", "b")
    assert ended.longer == pytest.approx(0.1)
    assert next_words(model, tokenizer, "b a ").part == ""


def test_token_of_a_word_tokenizer_is_a_word_and_unknown_ones_are_apart():
    tokenizer = WordTokenizer.from_words(["ab", "ba"])
    table_VV = np.zeros((5, 5))
    table_VV[:] = [0.1, 0.0, 0.2, 0.4, 0.3]
    found = next_words(TableModel(table_VV), tokenizer, "ab")
    assert [(word.text, word.probability) for word in found.words] == [
        ("ab", pytest.approx(0.4)),
        ("ba", pytest.approx(0.3)),
    ]
    assert (found.end, found.unknown, found.left) == (pytest.approx(0.2), pytest.approx(0.1), 0.0)
    assert found.ended == "ab"


@pytest.mark.parametrize("name", TOKENIZERS)
def test_little_effort_leaves_more_and_never_adds_to_a_word(name):
    tokenizer = TOKENIZERS[name]
    model = table_model(tokenizer)
    few, many = (next_words(model, tokenizer, "", effort=effort) for effort in (8, 2048))
    p_of = {word.text: word.probability for word in many.words}
    assert few.left > many.left
    assert all(word.probability <= p_of[word.text] + 1e-12 for word in few.words)
    assert sum(word.probability for word in few.words) + few.end + few.left == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("prompt", ["", "ab "])
def test_quick_search_finds_the_same_first_words(name, prompt):
    tokenizer = TOKENIZERS[name]
    model = table_model(tokenizer)
    every, few = next_words(model, tokenizer, prompt), next_words(model, tokenizer, prompt, top=4)
    assert [word.text for word in few.words[:4]] == [word.text for word in every.words[:4]]
    for quick, whole in zip(few.words[:4], every.words[:4], strict=True):  # rare spellings may be left out
        assert 0.5 * whole.probability <= quick.probability <= whole.probability + 1e-12
    assert sum(word.probability for word in few.words) + few.end + few.left == pytest.approx(1, abs=1e-9)


def test_word_that_is_typed_is_completed_from_the_vocabulary():
    tokenizer = WordTokenizer.from_words(["ab", "aba", "ba"])
    table_VV = np.zeros((6, 6))
    table_VV[:] = [0.1, 0.0, 0.2, 0.1, 0.3, 0.3]
    found = next_words(TableModel(table_VV), tokenizer, "ba ab", part=True)
    assert [(word.text, word.probability) for word in found.words] == [
        ("aba", pytest.approx(0.75)),
        ("ab", pytest.approx(0.25)),
    ]
    assert (found.part, found.ended, found.end, found.unknown) == ("ab", "", 0.0, 0.0)
    nothing = next_words(TableModel(table_VV), tokenizer, "ba x", part=True)
    assert (nothing.words, nothing.unknown) == ((), 1.0)


@pytest.mark.parametrize("top", [1, 2, 7])
def test_few_words_of_a_word_tokenizer_are_the_first_of_all(top):
    tokenizer = WordTokenizer.from_words(["ab", "aba", "ba"])
    table_VV = np.zeros((6, 6))
    table_VV[:] = [0.1, 0.0, 0.2, 0.1, 0.25, 0.35]
    model = TableModel(table_VV)
    assert next_words(model, tokenizer, "ab", top=top).words == next_words(model, tokenizer, "ab").words[:top]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_batch_size_changes_nothing(name):
    tokenizer = TOKENIZERS[name]
    model = table_model(tokenizer)
    found = [next_words(model, tokenizer, "ab ", batch=batch, effort=300) for batch in (1, 7, 256)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("family", ["lstm", "transformer"])
def test_networks_read_words_of_different_lengths_in_one_batch(family):
    torch = pytest.importorskip("torch")
    from nextword.models.network import NeuralLanguageModel

    tokenizer = TOKENIZERS["bpe"]
    made = catalog.find("model", family)
    torch.manual_seed(0)
    model = NeuralLanguageModel(made.build(made.Settings(hidden=8), tokenizer.vocab_size, True))
    words = ["a", "ab", "aba", "baabaa"]
    one, many = (next_words(model, tokenizer, "ab ", words=words, batch=batch) for batch in (1, 256))
    assert {word.text for word in one.words} == set(words)
    p_of = {word.text: word.probability for word in many.words}
    assert {word.text: word.probability for word in one.words} == pytest.approx(p_of, rel=1e-2)
    every = next_words(model, tokenizer, "ab ", effort=300)
    assert sum(word.probability for word in every.words) + every.end + every.left == pytest.approx(
        1, abs=1e-3
    )


@given(st.lists(st.text("abé ", min_size=1, max_size=4), min_size=1, max_size=20), st.text("abé", max_size=3))
def test_words_of_one_beginning_are_found_in_a_sorted_vocabulary(words, part):
    class Listed:
        vocab_size = len(words)

        def piece(self, index):
            return words[index]

    found = words_of(Listed()).beginning(part)
    assert sorted(found) == [index for index, word in enumerate(words) if word.startswith(part)]
