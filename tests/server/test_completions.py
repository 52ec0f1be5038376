"""``/v1/completions``: continues and scores, for every family."""

import pytest

import nextword

FAMILIES = ["words", "counts", "lstm", "transformer"]
PROMPT = "the cat sat on"


@pytest.mark.parametrize("name", FAMILIES)
def test_echo_with_logprobs_gives_the_scores_of_the_run(site, runs, name):
    found = site.complete(name, PROMPT, max_tokens=0, echo=True, logprobs=1).json["choices"][0]
    own = nextword.load(runs[name]).score(PROMPT).tokens[:-1]  # that also counts END
    assert found["logprobs"]["tokens"] == [token.text for token in own]
    assert found["logprobs"]["token_logprobs"] == pytest.approx([token.logprob for token in own], abs=1e-5)
    assert found["text"] == PROMPT
    assert found["finish_reason"] == "length"


@pytest.mark.parametrize("name", FAMILIES)
def test_greedy_answer_is_that_of_generate(site, runs, name):
    found = site.complete(name, PROMPT, max_tokens=8, temperature=0).json
    text = nextword.load(runs[name]).generate(PROMPT, decode="greedy", max_tokens=8)
    assert PROMPT + found["choices"][0]["text"] == text


@pytest.mark.parametrize("name", FAMILIES)
def test_sample_with_a_seed_is_that_of_generate(site, runs, name):
    found = site.complete(name, PROMPT, max_tokens=8, seed=7, n=3).json["choices"]
    texts = nextword.load(runs[name]).generate(PROMPT, max_tokens=8, seed=7, samples=3)
    assert [PROMPT + each["text"] for each in found] == list(texts)


@pytest.mark.parametrize("name", FAMILIES)
def test_stream_is_the_whole_answer_piece_by_piece(site, name):
    asked = {"max_tokens": 12, "seed": 3, "n": 2, "logprobs": 2, "echo": True}
    whole = site.complete(name, PROMPT, **asked).json["choices"]
    events = site.complete(name, PROMPT, stream=True, **asked).events
    for index in (0, 1):
        pieces = [each for event in events for each in event["choices"] if each["index"] == index]
        assert "".join(each["text"] for each in pieces) == whole[index]["text"]
        assert [each["finish_reason"] for each in pieces][:-1] == [None] * (len(pieces) - 1)
        assert pieces[-1]["finish_reason"] == whole[index]["finish_reason"]
        for field in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
            joined = [value for each in pieces for value in each["logprobs"][field]]
            assert joined == pytest.approx(whole[index]["logprobs"][field]) if "top" not in field else joined


def test_start_before_ids_is_read_and_not_predicted(site, runs):
    ids = [int(i) for i in nextword.load(runs["counts"]).tokenizer.encode(PROMPT)]
    plain, begun = (
        site.complete("counts", prompt, max_tokens=0, echo=True, logprobs=1).json["choices"][0]["logprobs"]
        for prompt in (ids, [1, *ids])
    )
    assert begun["tokens"] == ["<s>", *plain["tokens"]]
    assert begun["token_logprobs"] == [None, *plain["token_logprobs"]]


@pytest.mark.parametrize("name", FAMILIES)
def test_most_likely_token_has_exactly_the_largest_alternative(site, name):
    made = site.complete(name, PROMPT, max_tokens=6, temperature=0, echo=False, logprobs=1).json
    greedy = made["choices"][0]["logprobs"]
    text = PROMPT + made["choices"][0]["text"]
    again = site.complete(name, text, max_tokens=0, echo=True, logprobs=1).json["choices"][0]["logprobs"]
    for token, top in zip(again["token_logprobs"], again["top_logprobs"], strict=True):
        assert token <= max(top.values())
    assert greedy["token_logprobs"] == [max(top.values()) for top in greedy["top_logprobs"]]


def test_top_k_beyond_any_vocabulary_means_all_tokens(site):
    assert site.complete("counts", PROMPT, max_tokens=1, top_k=2**31 - 1, seed=1).status == 200


def test_null_means_that_a_parameter_is_left_out(site):
    asked = {"max_tokens": 5, "seed": 4}
    nulls = dict.fromkeys(
        ["n", "temperature", "top_p", "stop", "best_of", "echo", "stream", "logit_bias", "suffix"]
    )
    found, expected = (site.complete("lstm", PROMPT, **asked, **more) for more in (nulls, {}))
    assert found.json["choices"] == expected.json["choices"]
    assert site.ask("/v1/completions", {"model": None, "prompt": PROMPT}).status == 422


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"max_token": 5}, "unknown parameter 'max_token'; did you mean 'max_tokens'?"),
        ({"max_tokens": -1}, "'max_tokens' must be greater than or equal to 0"),
        ({"suffix": "the end"}, "'suffix' is not possible here; leave it out"),
    ],
)
def test_wrong_parameter_is_named_with_what_is_allowed(site, asked, sentence):
    found = site.complete("lstm", PROMPT, **asked)
    assert (found.status, found.json["error"]["message"]) == (422, sentence)
    assert found.json["error"]["param"] == next(iter(asked))
