"""Models in few bits: what they store, what they sum to, what they lose, and how they are saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from packed_texts import pack, zipf_text

import nextword
from nextword.core.contracts import START
from nextword.core.errors import ConfigError, DamagedError
from nextword.ngram import bitfields, estimation
from nextword.ngram.arrays import Level, Trie
from nextword.ngram.model import NgramModel
from nextword.ngram.quantized import QuantizedTrie
from nextword.ngram.quantizing import quantize
from nextword.ngram.settings import NgramSettings

SMOOTHINGS = ["katz", "witten-bell", "absolute", "kneser-ney", "modified-kneser-ney"]


@pytest.fixture(scope="module", params=SMOOTHINGS)
def model(request, text) -> NgramModel:
    return quantize(estimation.build(text, 60, NgramSettings(order=4, smoothing=request.param)), 5)


def test_same_ngrams_come_back(model):
    assert model.exact is not None
    for mine, theirs in zip(model.trie.levels, model.exact.trie.levels, strict=True):
        assert np.array_equal(mine.words, theirs.words)
        assert (mine.children is None) == (theirs.children is None)
        if mine.children is not None and theirs.children is not None:
            assert np.array_equal(mine.children, theirs.children)
            assert mine.children.dtype == theirs.children.dtype


def test_every_distribution_sums_to_one(model, text):
    rows = np.lib.stride_tricks.sliding_window_view(text, 3)[::7]
    _, state = model.score(rows, np.full(len(rows), 3))
    sums = np.exp(model.next(state)).sum(axis=1)
    np.testing.assert_allclose(sums, 1.0, atol=1e-6)


def test_step_equals_score(model):
    words = np.array([[5, 3, 9, 4, 3, 58, 11, 3]])
    scores = model.score(words, np.array([8]))[0][0]
    state = model.start(1)
    for t, word in enumerate(words[0]):
        np.testing.assert_allclose(model.next(state)[0, word], scores[t], rtol=1e-12)
        _, state = model.step(np.array([word]), state)


def test_more_bits_lose_less_and_eight_lose_little(text):
    exact = estimation.build(text, 60, NgramSettings(order=3))
    new = zipf_text(150, 60, seed=9)

    def perplexity(of: NgramModel) -> float:
        return float(np.exp(-of.score_packed(new).sum() / (new != START).sum()))

    rise = [perplexity(quantize(exact, bits)) / perplexity(exact) - 1 for bits in (4, 8)]
    assert abs(rise[1]) < 0.002
    assert abs(rise[1]) < abs(rise[0])


def test_few_distinct_probabilities_come_back_unchanged():
    exact = estimation.build(zipf_text(4, 8), 8, NgramSettings(order=2))
    again = quantize(exact, 8)
    for mine, theirs in zip(again.trie.levels, exact.trie.levels, strict=True):
        np.testing.assert_allclose(mine.probs, theirs.probs, rtol=1e-3)


def test_tokens_all_seen_after_a_context_sum_to_one():
    # Every token follows token 3, so that nothing is left to unseen ones: 0 / 0 must not become a weight.
    probs = np.array([0.0, 0.25, 0.0, 0.25, 0.5], dtype=np.float32)
    weights = np.array([1, 1, 1, 0.0, 1], dtype=np.float32)
    first = Level(np.arange(5, dtype=np.int32), probs, weights, np.array([0, 0, 0, 0, 3, 3], dtype=np.uint32))
    second = Level(
        np.array([1, 3, 4], dtype=np.int32), np.array([0.5, 0.3, 0.2], dtype=np.float32), None, None
    )
    found = QuantizedTrie.of(Trie((first, second)), 8).trie()
    assert np.all(np.isfinite(found.levels[0].backoffs))
    np.testing.assert_allclose(found.levels[1].probs.sum(dtype=np.float64), 1.0, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_short_orders_work(text, order):
    exact = estimation.build(text, 60, NgramSettings(order=order))
    again = quantize(exact, 8)
    assert again.trie.sizes == exact.trie.sizes
    assert np.abs(again.score_packed(text) - exact.score_packed(text)).mean() < 0.02


def test_orders_longer_than_any_sentence_are_empty():
    exact = estimation.build(pack([[3, 4], [5], []]), 9, NgramSettings(order=7))
    assert exact.trie.sizes[-1] == 0
    assert quantize(exact, 8).trie.sizes == exact.trie.sizes


@pytest.mark.parametrize("smoothing", ["stupid", "add", "mle", "laplace", "backoff"])
def test_smoothings_without_such_weights_are_refused(text, smoothing):
    with pytest.raises(ConfigError, match=r"'model\.bits' 8 does not work with"):
        estimation.build(text, 60, NgramSettings(order=2, smoothing=smoothing, bits=8))


@pytest.mark.parametrize("bits", [1, 3, 9])
def test_other_numbers_of_bits_are_refused(bits):
    with pytest.raises(ValueError, match="bits"):
        NgramSettings(bits=bits)


def test_scores_are_not_quantized(text):
    stupid = estimation.build(text, 60, NgramSettings(order=2, smoothing="stupid"))
    with pytest.raises(ConfigError, match="do not sum to one"):
        quantize(stupid, 8)


@pytest.mark.parametrize("name", ["ngram-3.ranks.npy", "ngram-2.widths.npy", "ngram-2.codes.npy"])
def test_arrays_that_contradict_each_other_are_damage(text, name):
    stored = QuantizedTrie.of(estimation.build(text, 60, NgramSettings(order=3)).trie, 8)
    arrays = stored.arrays | {name: stored.arrays[name][:-1]}
    with pytest.raises(DamagedError, match="damaged"):
        QuantizedTrie(8, stored.sizes, arrays).trie()


def test_shape_with_wrong_bits_is_damage(text):
    stored = QuantizedTrie.of(estimation.build(text, 60, NgramSettings(order=3)).trie, 8)
    arrays = stored.arrays | {"ngram-2.widths.npy": stored.arrays["ngram-2.widths.npy"] ^ 255}
    with pytest.raises(DamagedError, match="damaged"):
        QuantizedTrie(8, stored.sizes, arrays).trie()


def test_compiled_expansion_equals_the_plain_one(text, monkeypatch):
    stored = QuantizedTrie.of(estimation.build(text, 60, NgramSettings(order=5)).trie, 6)
    plain = stored.trie()
    monkeypatch.setattr(bitfields, "SMALL", 0)
    for mine, theirs in zip(stored.trie().levels, plain.levels, strict=True):
        assert np.array_equal(mine.words, theirs.words)
        np.testing.assert_allclose(mine.probs, theirs.probs, rtol=1e-6)
        if mine.backoffs is not None and theirs.backoffs is not None:
            np.testing.assert_allclose(mine.backoffs, theirs.backoffs, rtol=1e-6)


@pytest.fixture
def files(tmp_path) -> tuple[Path, Path]:
    words = ["the", "a", "dog", "cat", "sees", "saw", "and", "old", "big", "one"]
    rng = np.random.default_rng(4)

    def write(name: str, lines: int) -> Path:
        drawn = rng.zipf(1.4, (lines, 9)) % len(words)
        (tmp_path / name).write_text("\n".join(" ".join(words[k] for k in row) for row in drawn) + "\n")
        return tmp_path / name

    return write("train.txt", 2500), write("valid.txt", 60)


def test_run_is_small_and_says_what_it_lost(files, tmp_path, caplog):
    train, valid = files
    caplog.set_level("INFO", "nextword")
    plain = nextword.train(train, model="ngram", out=tmp_path / "plain")
    run = nextword.train(train, model="ngram", valid=valid, set={"model.bits": 8}, out=tmp_path / "small")

    def size(folder: Path) -> int:
        return sum(path.stat().st_size for path in folder.glob("ngram-*.npy"))

    assert size(tmp_path / "small") < size(tmp_path / "plain") / 4
    card = (tmp_path / "small" / "README.md").read_text()
    assert "bits of a probability: 8" in card
    assert "valid perplexity before quantizing" in card
    assert "valid perplexity rise by quantizing in percent" in card
    assert "quantizing changed the perplexity from" in caplog.text
    again = nextword.load(tmp_path / "small")
    text = "the old dog saw a cat"
    assert again.score(text).logprob == run.score(text).logprob
    assert abs(again.score(text).logprob - plain.score(text).logprob) < 0.2
    assert "|bits:8|" in again.evaluate(valid).signature
    assert "|bits:8|" not in plain.evaluate(valid).signature


def test_loaded_run_is_saved_again_in_as_few_bits(files, tmp_path):
    run = nextword.train(files[0], model="ngram", set={"model.bits": 6, "model.order": 3}, out=tmp_path / "a")
    again = nextword.load(tmp_path / "a")
    again.save(tmp_path / "b")
    for path in (tmp_path / "a").glob("ngram*"):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    assert nextword.load(tmp_path / "b").score("the dog").logprob == run.score("the dog").logprob


def test_changed_byte_is_found(files, tmp_path):
    nextword.train(files[0], model="ngram", set={"model.bits": 8}, out=tmp_path / "a")
    path = tmp_path / "a" / "ngram-3.codes.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedError, match=r"ngram-3\.codes\.npy"):
        nextword.load(tmp_path / "a")


def test_imported_arpa_file_can_be_quantized(files, tmp_path):
    run = nextword.train(files[0], model="ngram", set={"model.order": 3})
    file = nextword.export(run, tmp_path / "m.arpa")
    small = nextword.import_(file, tmp_path / "small", set={"model.bits": 8})
    assert abs(small.score("the old dog").logprob - run.score("the old dog").logprob) < 0.1
    assert sum(p for _, p in small.next("the old", top=None)) == pytest.approx(1.0, abs=1e-6)
    assert (tmp_path / "small" / "ngram-3.codes.npy").is_file()
    with pytest.raises(ConfigError, match=r"'model\.order' cannot be set"):
        nextword.import_(file, tmp_path / "other", set={"model.order": 2})


def test_memory_limit_is_refused(files):
    with pytest.raises(ConfigError, match=r"'model\.bits' needs all counts in memory"):
        nextword.train(files[0], model="ngram", set={"model.bits": 8, "train.memory": "2G"})
