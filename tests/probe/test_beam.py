"""The tree of a beam search is the search: its words, its probabilities, its best text."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.decode.generate import collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.probe import selection
from nextword.probe.settings import ProbeSettings


@pytest.mark.parametrize("name", ["ngram", "lstm", "transformer"])
def test_the_best_text_is_the_one_that_generate_finds(subject, name):
    made = subject(name)
    made.given = "the"
    found = selection.look("beam", made, ProbeSettings(beam_size=3, max_tokens=6))
    settings = DecodeSettings(decode="beam", beam_size=3, n_best=3, max_tokens=6)
    ids = [int(i) for i in made.tokenizer.encode("the")]
    texts = collect(generate(made.model, [ids], settings, made.tokenizer))
    words, parents = found.arrays["word_N"], found.arrays["parent_N"]
    paths, sums = [], []
    for word, parent, logp in zip(words, parents, found.arrays["logp_N"], strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), int(word)))
        sums.append(logp + (sums[parent] if parent >= 0 else 0.0))
    for text in texts:
        assert text.ids in paths
        assert sums[paths.index(text.ids)] == pytest.approx(text.logprob, abs=1e-4)
    assert len(set(paths)) == len(paths)
    assert all(np.sum([len(path) == step for path in paths]) <= 6 for step in range(1, 7))
    assert f"'{texts[0].text.strip()}'" in found.sentence


def test_a_beam_of_one_is_greedy(subject):
    made = subject("lstm")
    made.given = "a dog"
    found = selection.look("beam", made, ProbeSettings(beam_size=1, max_tokens=5))
    greedy = DecodeSettings(decode="greedy", max_tokens=5)
    (text,) = collect(generate(made.model, [[int(i) for i in made.tokenizer.encode("a dog")]], greedy))
    assert tuple(found.arrays["word_N"].tolist()) == text.ids


def test_a_beam_needs_no_prompt(subject):
    made = subject("ngram")
    made.given = None
    found = selection.look("beam", made, ProbeSettings(beam_size=2, max_tokens=3))
    assert "&lt;s&gt;" in found.parts[0].svg
