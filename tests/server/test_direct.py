"""Routes that are called directly answer as FastAPI's own, which is the plain twin."""

import asyncio
import json

import pytest
from loops import run
from served import serving

from nextword.server.app import application
from nextword.server.direct import Direct
from nextword.server.protocol import Gathering

ASKED = [
    ("/v1/completions", {"model": "words", "prompt": "the cat", "max_tokens": 5, "temperature": 0}),
    ("/v1/completions", {"model": "words", "prompt": "the", "max_tokens": 4, "seed": 1, "stream": True}),
    ("/v1/completions", {"model": "words", "prompt": ["the"], "logprobs": 2, "echo": True, "max_tokens": 0}),
    ("/v1/completions", {"model": "nobody", "prompt": "the"}),
    ("/v1/completions", {"model": "words", "prompt": 5}),
    ("/v1/completions", {"model": "words", "prompt": [[1, 2], "a"], "n": 0, "top_p": 2}),
    ("/v1/completions", {"model": "words", "best_of": 1, "n": 2}),
    ("/v1/completions", {"model": "words", "unknown": 1, "max_tokens": "5"}),
    ("/v1/completions", {}),
    ("/v1/completions", []),
    ("/v1/completions", 3),
    ("/v1/completions", None),
    ("/v1/completions", b""),
    ("/v1/completions", b"{"),
    ("/v1/completions", b'{"model": "words", "model": "words"}'),
    ("/v1/completions", b'{"prompt": NaN}'),
    ("/v1/completions", b"\xff"),
    ("/v1/chat/completions", {"model": "words", "messages": [{"role": "user", "content": "the"}], "seed": 1}),
    ("/v1/chat/completions", {"model": "words", "messages": [{"role": "robot", "content": "the"}]}),
    ("/v1/embeddings", {"model": "words", "input": "the"}),
    ("/v1/predict", {"model": "words", "input": "the"}),
    ("/tokenize", {"model": "words", "prompt": "the cat", "return_token_strs": True}),
    ("/detokenize", {"model": "words", "tokens": [3, 4, 99999999]}),
    ("/api/next", {"model": "words", "text": "the "}),
    ("/api/surprise", {"model": "words", "text": "the cat"}),
]


@pytest.fixture(scope="module")
def apps(runs):
    """The application of FastAPI, and the same with its routes called directly."""
    with serving(runs["words"]) as site:
        app = application(site.shelf)
        yield app, Direct(app, app.state.routes)


async def answer(app, path, body):
    """Send a request to an application; return the status, the type and the body."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
        "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "scheme": "http", "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2),
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }  # fmt: skip
    messages, sent = iter([{"type": "http.request", "body": data, "more_body": False}]), []

    async def receive():
        try:
            return next(messages)
        except StopIteration:
            return await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    headers = dict(sent[0]["headers"])
    return sent[0]["status"], headers[b"content-type"], b"".join(each.get("body", b"") for each in sent[1:])


def without_names(data):
    """Leave out what differs by chance and by the clock: also how many tokens an event of a stream has."""
    if data.startswith(b"data: "):
        events = [without_names(line[6:]) for line in data.split(b"\n\n") if line.startswith(b"data: {")]
        text = "".join(event["choices"][0]["text"] for event in events)
        return text, events[-1]["choices"][0]["finish_reason"]
    found = json.loads(data)
    return {name: value for name, value in found.items() if name not in ("id", "created")}


@pytest.mark.parametrize(("path", "body"), ASKED)
def test_a_direct_route_answers_as_the_plain_one(apps, path, body):
    async def both():
        return [await answer(app, path, body) for app in apps]

    (status, kind, plain), (direct_status, direct_kind, direct) = run(both())
    assert (status, kind) == (direct_status, direct_kind)
    assert without_names(plain) == without_names(direct)


def test_every_route_that_takes_a_body_is_called_directly(apps):
    app, direct = apps
    posts = {route.path for route in app.state.routes if "POST" in route.methods}
    assert posts
    assert set(direct._targets) == posts


def test_an_error_of_ours_is_a_sentence_for_the_client_and_reaches_the_log(apps, monkeypatch):
    app, direct = apps
    monkeypatch.setattr(app.state, "shelf", None)
    sent = []

    async def ask():
        nonlocal sent
        with pytest.raises(AttributeError):
            await answer(Noting(direct, sent), "/tokenize", {"prompt": "the", "model": "words"})

    run(ask())
    assert sent[0]["status"] == 500
    assert b"internal_error" in sent[1]["body"]
    assert b"Attribute" not in sent[1]["body"]


class Noting:
    """An application that keeps what another one sends."""

    def __init__(self, app, sent):
        self.app, self.sent = app, sent

    async def __call__(self, scope, receive, send):
        async def noting(message):
            self.sent.append(message)
            await send(message)

        await self.app(scope, receive, noting)


class Wire:
    """A transport that notes what it is asked for."""

    def __init__(self):
        self.calls, self.closed = [], False

    def write(self, data):
        self.calls.append(data)

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed


def test_what_is_written_in_one_turn_is_sent_at_once_and_before_the_end():
    async def talk():
        wire = Wire()
        gathering = Gathering(wire, asyncio.get_running_loop())
        gathering.write(b"head")
        gathering.write(b"")
        gathering.write(b"body")
        assert wire.calls == []
        await asyncio.sleep(0)
        assert wire.calls == [b"headbody"]
        gathering.write(b"x" * (1 << 16))  # much is not kept until the turn ends
        assert len(wire.calls) == 2
        gathering.write(b"last")
        gathering.close()
        assert wire.calls[2:] == [b"last"]
        assert wire.closed
        gathering.write(b"too late")
        await asyncio.sleep(0)
        assert len(wire.calls) == 3

    run(talk())
