"""``/v1/embeddings``: the mean of a network's features, of length 1."""

import base64

import numpy as np
import pytest

import nextword
from nextword.models.distributions import as_numpy


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_vector_is_the_mean_of_the_features_after_each_token(site, runs, name):
    got = site.ask("/v1/embeddings", {"model": name, "input": ["the cat", "on the mat"]}).json["data"]
    run = nextword.load(runs[name])
    for each, text in zip(got, ["the cat", "on the mat"], strict=True):
        ids = run.tokenizer.encode(text)
        state, features = run.model.start(1), []
        for index in ids:
            state = run.model.step(np.array([index]), state)[1]
            features.append(as_numpy(state.feature_BD, np.float64)[0])
        mean = np.mean(features, axis=0)
        assert each["embedding"] == pytest.approx((mean / np.linalg.norm(mean)).tolist(), abs=1e-5)


def test_base64_holds_the_same_numbers(site):
    asked = {"model": "lstm", "input": "the cat"}
    plain = site.ask("/v1/embeddings", asked).json["data"][0]["embedding"]
    packed = site.ask("/v1/embeddings", {**asked, "encoding_format": "base64"}).json["data"][0]["embedding"]
    assert np.frombuffer(base64.b64decode(packed), "<f4").tolist() == pytest.approx(plain)


def test_count_model_says_that_it_has_no_vectors(site):
    found = site.ask("/v1/embeddings", {"model": "counts", "input": "the cat"})
    assert (found.status, found.json["error"]["code"]) == (400, "no_vectors")


def test_empty_input_is_refused(site):
    assert site.ask("/v1/embeddings", {"model": "lstm", "input": ["the", ""]}).status == 422
