"""Malformed requests: every answer is a 4xx with our form of error, and the server lives."""

import json
import random
import socket

import pytest

FEW, MANY = 300, 10_000
ROUTES = (
    "/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/v1/predict", "/tokenize", "/detokenize",
)  # fmt: skip
GOOD = {
    "/v1/completions": {"model": "counts", "prompt": "the", "max_tokens": 2},
    "/v1/chat/completions": {
        "model": "counts",
        "messages": [{"role": "user", "content": "a"}],
        "max_tokens": 2,
    },
    "/v1/embeddings": {"model": "lstm", "input": "the"},
    "/v1/predict": {"model": "counts", "input": "the"},
    "/tokenize": {"model": "counts", "prompt": "the"},
    "/detokenize": {"model": "counts", "tokens": [3]},
}
BAD = [
    None, True, -1, 10**18, 1e300, "", "\0", "x" * 5000, [], [[]], [[[]]], {}, {"a": {"a": {}}}, ["a", 1],
    [None],
    "../../etc/passwd", "\u202e", [1] * 300, {"role": "user"}, -0.0, 2**63,
]  # fmt: skip


def mutated(rng):
    """Return a route and a body that is wrong in some way: a value, a key, or the bytes themselves."""
    route = rng.choice(ROUTES)
    body = json.loads(json.dumps(GOOD[route]))
    kind = rng.randrange(4)
    if kind == 0:
        body[rng.choice([*body, "n", "temperature", "logit_bias", "stop", "stream"])] = rng.choice(BAD)
    elif kind == 1:
        body[rng.choice(["unknown", "", "__class__", "model ", "prompt\n"])] = rng.choice(BAD)
    elif kind == 2:
        body.pop(rng.choice(list(body)))
    data = json.dumps(body).encode()
    if kind == 3:
        at = rng.randrange(len(data))
        data = rng.choice(
            [data[:at], data[:at] + rng.randbytes(3) + data[at:], data + data, rng.randbytes(40)]
        )
    return route, data


def try_bodies(site, count):
    rng = random.Random(0)
    seen = set()
    for _ in range(count):
        route, data = mutated(rng)
        found = site.ask(route, data)
        assert found.status < 500, (route, data, found.body)
        if found.status >= 400:
            assert set(found.json["error"]) == {"message", "type", "param", "code"}
        seen.add(found.status)
    assert site.ask("/live").status == 200
    assert site.complete("counts", "the", max_tokens=1).status == 200
    return seen


def test_bodies_that_are_wrong_are_refused(site):
    assert {200, 404, 422} <= try_bodies(site, FEW) | {404}


@pytest.mark.slow
def test_ten_thousand_bodies_that_are_wrong_are_refused(site):
    assert try_bodies(site, MANY) <= {200, 400, 404, 413, 415, 422}


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX\r\n: y\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /%ff%00/../.. HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ],
)  # fmt: skip
def test_bytes_that_are_not_http_do_no_harm(site, data):
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        got = connection.recv(1000)
    assert got == b"" or got.split(b" ")[1][:1] == b"4"
    assert site.ask("/live").status == 200
