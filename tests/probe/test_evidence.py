"""The evidence of count models: counts come back exactly, weights multiply to the probability."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from nextword.core.contracts import END, START
from nextword.mixtures.mixture import Mixture
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings
from nextword.ngram.unbounded import UnboundedSettings
from nextword.ngram.unbounded import build as build_unbounded
from nextword.probe import selection
from nextword.probe.evidence import OfEvidence, shares, sources
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject

COUNTED = [
    "modified-kneser-ney",
    "kneser-ney",
    "absolute",
    "witten-bell",
    "mle",
    "backoff",
    "stupid",
    "add",
    "laplace",
]


@pytest.fixture(scope="module")
def long_text() -> str:
    rng = np.random.default_rng(4)
    words = np.array([f"w{i}" for i in range(40)])
    chances = 1 / np.arange(1, 41)
    lines = [" ".join(rng.choice(words, rng.integers(3, 9), p=chances / chances.sum())) for _ in range(400)]
    return "\n".join(lines) + "\n"


def _made(subject, text, **settings):
    made = subject("ngram", text=text)
    ids = np.concatenate([row.ids_T for row in made.rows(10**6)])
    chosen = NgramSettings(order=3, **settings)
    model = estimation.build(ids, made.tokenizer.vocab_size, chosen)
    facts = {"tokens": int((ids != START).sum()), "settings": chosen}
    return Subject("counts", model, made.tokenizer, text, 0, facts), ids


def _counts(ids, order):
    """Every n-gram of a packed text, and how often it is there; none crosses START."""
    found = Counter()
    for end in range(len(ids)):
        gram = tuple(ids[max(0, end - order + 1) : end + 1].tolist())
        if len(gram) == order and START not in gram[1:]:
            found[gram] += 1
    return found


@pytest.mark.parametrize("smoothing", COUNTED)
def test_counts_of_the_highest_order_are_those_of_the_text(subject, long_text, smoothing):
    made, ids = _made(subject, long_text, smoothing=smoothing)
    trigrams, checked = _counts(ids, 3), 0
    contexts = Counter()
    for gram, times in trigrams.items():
        contexts[gram[:2]] += times
    rows = made.rows(400)
    for row, found in zip(rows, sources(made, rows), strict=True):
        for t, source in enumerate(found, start=1):
            if source.order == 3:
                gram = tuple(row.ids_T[t - 2 : t + 1].tolist())
                context = contexts[gram[:2]]
                assert (source.count, source.total) == (trigrams[gram], context), source
                checked += 1
    assert checked > 100


@pytest.mark.parametrize("smoothing", ["mle", "backoff", "witten-bell", "absolute"])
def test_counts_of_lower_orders_are_plain_where_the_smoothing_counts_plainly(subject, long_text, smoothing):
    made, ids = _made(subject, long_text, smoothing=smoothing)
    made.given = "w5 w30 w31 w39 w2 w38 w1"
    bigrams = _counts(ids, 2)
    row = made.rows(50)[0]
    found = [(t, source) for t, source in enumerate(sources(made, [row])[0], start=1) if source.order == 2]
    for t, source in found:
        assert source.count == bigrams[tuple(row.ids_T[t - 1 : t + 1].tolist())]
    assert found or smoothing == "mle"


def test_kneser_neys_lower_orders_count_different_words_before(subject, long_text):
    made, ids = _made(subject, long_text, smoothing="modified-kneser-ney")
    made.given = "w5 w30 w31 w39 w2 w38 w1"
    trigrams = _counts(ids, 3)
    row = made.rows(50)[0]
    for t, source in enumerate(sources(made, [row])[0], start=1):
        if source.order == 2 and t > 1:
            pair = tuple(row.ids_T[t - 1 : t + 1].tolist())
            assert source.count == sum(gram[1:] == pair for gram in trigrams)


@pytest.mark.parametrize("smoothing", ["modified-kneser-ney", "absolute", "kneser-ney"])
def test_discounts_are_those_of_training(subject, long_text, smoothing):
    made, ids = _made(subject, long_text, smoothing=smoothing)
    n_r = np.bincount(list(_counts(ids, 3).values()), minlength=5)[:5].astype(float)
    Y = n_r[1] / (n_r[1] + 2 * n_r[2])
    expected = {
        1: 1 - 2 * Y * n_r[2] / n_r[1],
        2: 2 - 3 * Y * n_r[3] / n_r[2],
        3: 3 - 4 * Y * n_r[4] / n_r[3],
    }
    found = [source for row in sources(made, made.rows(400)) for source in row if source.order == 3]
    for source in found:
        D = expected[min(source.count, 3)] if smoothing.startswith("modified") else Y
        assert source.discount == pytest.approx(D, abs=1e-4)


def test_a_probability_is_the_weights_times_the_shorter_n_grams(subject, long_text):
    made, _ = _made(subject, long_text, smoothing="modified-kneser-ney")
    made.given = "w5 w30 w31 w39 w2 w38 w1"
    row = made.rows(50)[0]
    logp, _ = made.model.score(row.ids_T[None, 1:], np.array([len(row) - 1]))
    found = sources(made, [row])[0]
    assert [source.p for source in found] == pytest.approx(np.exp(logp[0]).tolist())
    for t, source in enumerate(found, start=1):
        state = made.model.start(1, begin=t - source.order + 1 == 0 and source.order > 1)
        before = row.ids_T[max(0, t - source.order + 1) : t]
        before = before[before != START]
        if len(before):
            state = made.model.score(before[None], np.array([len(before)]), state)[1]
        shorter = np.exp(made.model.next(state)[0, int(row.ids_T[t])])
        assert source.p == pytest.approx(source.weight * shorter, rel=1e-5)
    assert any(source.skipped for source in found)


def test_pruned_models_do_not_tell_counts_that_they_do_not_have(subject, long_text):
    made, _ = _made(subject, long_text, smoothing="modified-kneser-ney", prune=(0, 0, 1))
    found = [source for row in sources(made, made.rows(100)) for source in row]
    assert all(source.count is None for source in found if source.order == 3)
    assert selection.look("evidence", made).arrays["p_N"].shape == (
        len(selection.look("evidence", made).names["N"]),
    )


def test_evidence_of_an_unbounded_model_is_its_longest_match(subject, long_text):
    made, ids = _made(subject, long_text)
    model = build_unbounded(ids, made.tokenizer.vocab_size, UnboundedSettings())
    first = long_text.split("\n")[0]
    found = selection.look("evidence", Subject("u", model, made.tokenizer, first))
    assert found.arrays["length_N"][-1] >= len(first.split())
    assert (found.arrays["hits_N"] <= found.arrays["total_N"]).all()


def test_shares_of_a_mixture_sum_to_one_and_give_its_probability(subject):
    counts, network = subject("ngram"), subject("lstm")
    model = Mixture([counts.model, network.model], [0.3, 0.7])
    text = "the cat saw the dog .\na dog sat .\n"
    made = Subject("both", model, counts.tokenizer, text)
    labels, logp_KN, share_KN = shares(made, 60)
    assert share_KN.sum(axis=0) == pytest.approx(np.ones(len(labels)))
    mixed = np.log(0.3 * np.exp(logp_KN[0]) + 0.7 * np.exp(logp_KN[1]))
    from nextword.core.contracts import Block
    from nextword.evaluation.lm.streams import ScoreStream

    (piece,) = counts.tokenizer.encode_blocks([Block(text.encode(), True)])
    expected = ScoreStream(model, carry=True).push(piece.ids, piece.documents)[np.asarray(piece.ids) != START]
    assert mixed == pytest.approx(expected, abs=1e-5)
    found = selection.look("evidence", made)
    assert found.names["N"][-1] == "⏎"
    assert "n-gram model (weight 0.30)" in found.sentence


def test_a_probe_of_networks_looks_at_the_network_of_a_mixture(subject):
    counts, network = subject("ngram"), subject("lstm")
    made = Subject(
        "both", Mixture([counts.model, network.model], [0.3, 0.7]), counts.tokenizer, "the cat sat ."
    )
    assert selection.look("gates", made).run == "both, part 2"
    assert OfEvidence().fits(made)
    assert "eigenvalues" in selection.fitting(made)
    assert selection.look("evidence", made, ProbeSettings(tokens=4)).run == "both"


def test_an_end_of_a_line_is_a_word_like_others(subject):
    found = selection.look("evidence", subject("ngram", text="the cat sat .\n"))
    assert found.names["N"][-1] == "⏎"
    assert END == 2
