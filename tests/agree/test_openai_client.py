"""OpenAI's own client works unchanged: completions, chat, streams, vectors, and its classes of errors."""

import pytest
from served import TEXT, serving

import nextword

openai = pytest.importorskip("openai")
pytestmark = pytest.mark.agree
KEY = "correct-horse-battery"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("openai")
    (folder / "t.txt").write_text(TEXT)
    small = {"model.hidden": 16, "train.steps": 2, "train.precision": "fp32"}
    nextword.train(str(folder / "t.txt"), model="ngram", out=str(folder / "counts"), set={"model.order": 3})
    nextword.train(str(folder / "t.txt"), model="lstm", tokenizer="bpe", out=str(folder / "lstm"), set=small)
    with serving(folder / "counts", folder / "lstm", key=KEY, rows=4, waiting=0) as found:
        yield found


@pytest.fixture
def client(site):
    with openai.OpenAI(base_url=f"{site.address}/v1", api_key=KEY, max_retries=0, timeout=30) as made:
        yield made


def test_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["counts", "lstm"]
    assert client.models.retrieve("lstm").id == "lstm"


def test_completion_with_scores(client):
    found = client.completions.create(
        model="counts", prompt="the cat", max_tokens=4, temperature=0, logprobs=2, echo=True
    )
    choice = found.choices[0]
    assert choice.text.startswith("the cat sat")
    assert len(choice.logprobs.tokens) == len(choice.logprobs.token_logprobs) == 6
    assert choice.logprobs.token_logprobs[0] < 0
    assert found.usage.completion_tokens == 4


def test_completion_as_a_stream(client):
    asked = {"model": "lstm", "prompt": "the", "max_tokens": 9, "seed": 4}
    whole = client.completions.create(**asked).choices[0].text
    pieces = [event.choices[0].text for event in client.completions.create(**asked, stream=True)]
    assert "".join(pieces) == whole


def test_chat_whole_and_as_a_stream(client):
    asked = {
        "model": "lstm",
        "messages": [{"role": "user", "content": "the cat"}],
        "max_tokens": 9,
        "seed": 4,
        "logit_bias": {"2": -100},
    }
    whole = client.chat.completions.create(**asked, logprobs=True, top_logprobs=2).choices[0]
    assert whole.message.role == "assistant"
    assert len(whole.logprobs.content) == 9
    events = list(client.chat.completions.create(**asked, stream=True))
    assert "".join(event.choices[0].delta.content or "" for event in events) == whole.message.content
    assert events[-1].choices[0].finish_reason == whole.finish_reason


def test_vectors(client):
    packed = client.embeddings.create(model="lstm", input=["the cat", "a dog"])
    plain = client.embeddings.create(model="lstm", input=["the cat", "a dog"], encoding_format="float")
    for one, other in zip(packed.data, plain.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
        assert sum(x * x for x in one.embedding) == pytest.approx(1, abs=1e-5)


def test_errors_are_those_of_the_client(site, client):
    with pytest.raises(openai.NotFoundError, match="no such model"):
        client.completions.create(model="nothing", prompt="the")
    with pytest.raises(openai.UnprocessableEntityError, match="max_tokens"):
        client.completions.create(model="counts", prompt="the", max_tokens=-1)
    with pytest.raises(openai.BadRequestError, match="no vectors"):
        client.embeddings.create(model="counts", input="the")
    with (
        openai.OpenAI(base_url=f"{site.address}/v1", api_key="wrong", max_retries=0) as other,
        pytest.raises(openai.AuthenticationError, match="key is wrong"),
    ):
        other.models.list()


def test_overload_is_a_rate_limit_error(client):
    long = {"max_tokens": 4000, "logit_bias": {"2": -100}}
    with client.completions.create(model="lstm", prompt="the", n=4, stream=True, **long) as stream:
        next(iter(stream))
        with pytest.raises(openai.RateLimitError, match="try again") as refused:
            client.completions.create(model="lstm", prompt="the")
        assert refused.value.response.headers["retry-after"] == "1"
