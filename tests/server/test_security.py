"""The security checks of a server: who may ask, how much, and what an answer never says.

The numbers are those of a list of 36 checks, of which 17 to 36 are a server's. Here are 18 to 33; 16 and 34
are in tests/page, 17, 30 and 36 in tests/cli/test_serve.py, 36 also in test_isolated.py, and 35 in
test_metrics.py.
"""

import http.client
import json
import logging
import socket
import struct
import threading
import time

import pytest
from served import serving, until

from nextword.server import security
from nextword.server.worker import place_of

KEY = "correct-horse-battery"


@pytest.fixture(scope="module")
def locked(runs):
    """A server with a key."""
    with serving(runs["counts"], key=KEY, header_seconds=0.5) as found:
        yield found


def raw(site, data, seconds=10.0):
    """Send bytes as they are; return what comes back until the server closes or falls silent."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=seconds) as connection:
        connection.sendall(data)
        got = b""
        try:
            while piece := connection.recv(65536):
                got += piece
        except (TimeoutError, ConnectionResetError):
            pass
        return got


# 18: a page under a name of its own that points to this machine (DNS rebinding)


@pytest.mark.parametrize(
    "host", ["evil.com", "evil.com:8000", "localhost.evil.com", "10.0.0.1", "", "a b", "[::1"]
)
def test_other_hosts_are_refused(site, host):
    found = site.ask("/v1/models", Host=host)
    assert (found.status, found.json["error"]["code"]) == (403, "wrong_host")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8000", "a.localhost", "127.0.0.2"]
)
def test_names_of_this_machine_are_hosts(site, host):
    assert site.ask("/v1/models", Host=host).status == 200


def test_two_hosts_are_refused(site):
    got = raw(site, b"GET /live HTTP/1.1\r\nHost: localhost\r\nHost: evil.com\r\nConnection: close\r\n\r\n")
    assert got.split(b" ")[1] in (b"400", b"403")


# 19: requests of pages from other sites


@pytest.mark.parametrize("origin", ["http://evil.com", "null", "http://localhost:1", "file://", "http://["])
def test_other_origins_are_refused_and_nothing_is_shared_with_them(site, origin):
    for found in (
        site.ask("/v1/models", Origin=origin),
        site.ask("/v1/completions", {"model": "counts"}, Origin=origin),
        site.ask("/v1/completions", method="OPTIONS", Origin=origin),
    ):
        assert found.status == 403
        assert not [name for name in found.headers if name.startswith("access-control")]


def test_own_origin_is_accepted(site):
    host = f"127.0.0.1:{site.port}"
    assert site.ask("/v1/models", Host=host, Origin=f"http://{host}").status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "x"]
)
def test_only_json_is_taken(site, kind):
    body = json.dumps({"model": "counts", "prompt": "the"}).encode()
    assert site.ask("/v1/completions", body, Content_Type=kind).status == 415


# 20: large bodies


def test_body_over_the_limit_is_refused_before_it_is_read(site):
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    got = raw(site, head + b"Content-Length: 1048577\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 413")


def test_chunked_body_over_the_limit_is_refused(site):
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    got = raw(site, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 17 + b"0\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 413")


def test_body_at_the_limit_is_read(site):
    body = json.dumps({"model": "counts", "prompt": "the", "max_tokens": 1}).encode()
    assert site.ask("/v1/completions", body + b" " * ((1 << 20) - len(body))).status == 200


# 21, 22: headers


def test_flood_of_headers_is_refused(site):
    got = raw(site, b"GET /live HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + b"a" * 200_000)
    assert got == b"" or got.split(b" ")[1] in (b"400", b"431")
    assert site.ask("/live").status == 200


@pytest.mark.parametrize("sent", [b"", b"GET /live HTTP/1.1\r\nHost: local", b"POST /tok"])
def test_connection_that_sends_no_whole_request_is_closed(locked, sent):
    began = time.monotonic()
    assert raw(locked, sent, seconds=20) == b""
    assert time.monotonic() - began < 15


def test_body_that_never_comes_ends_in_408(locked):
    head = (
        b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + KEY.encode() + b"\r\nContent-Length: 50\r\n\r\n{"
    )
    assert raw(locked, head, seconds=20).startswith(b"HTTP/1.1 408")


def test_header_injection_has_no_way_into_an_answer(site):
    name = "counts\r\nSet-Cookie: a=b"
    found = site.complete(name, "the")
    assert found.status == 404
    assert "set-cookie" not in found.headers
    found = site.ask("/v1/models/counts%0d%0aSet-Cookie:%20a=b")
    assert found.status == 404
    assert "set-cookie" not in found.headers


# 23: JSON that Python would take


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "counts", "temperature": NaN}', b'{"model": "counts", "temperature": Infinity}',
        b'{"model": "counts", "temperature": 1e999}', b'{"model": "counts", "model": "lstm"}',
        b'{"model": "counts", "seed": ' + b"9" * 5000 + b"}", b"[" * 100_000, b'{"a":' * 100_000,
        b'{"model": "counts", "prompt": "\\ud800"}', b'{"model": "counts", "prompt": "\xff"}', b"", b"{",
        b"nul", b"[]", b'"counts"', b"1",
    ],
)  # fmt: skip
def test_json_that_is_not_strict_is_refused(site, body):
    found = site.ask("/v1/completions", body)
    assert found.status == 422, found.body
    assert found.json["error"]["message"]


# 24, 25: limits of every parameter


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", -1), ("max_tokens", 10**6), ("max_tokens", 1.5), ("max_tokens", "5"), ("n", 0),
        ("n", 65), ("best_of", 0), ("best_of", 10**9), ("temperature", -0.1), ("temperature", 2.1),
        ("temperature", "1"), ("top_p", 0), ("top_p", 1.1), ("top_k", -2), ("min_p", -1),
        ("min_p", 2), ("presence_penalty", 3),
        ("frequency_penalty", -3), ("repetition_penalty", 0), ("logprobs", -1), ("logprobs", 101),
        ("logit_bias", {"a": 1}), ("logit_bias", {"3": 101}), ("logit_bias", {"3": None}),
        ("logit_bias", {str(i): 0 for i in range(1025)}), ("logit_bias", {"999999": 1}), ("stop", ""),
        ("stop", ["x"] * 17), ("stop", ["x" * 201]), ("seed", 2**63), ("seed", 1.5), ("prompt", []),
        ("prompt", [-1]), ("prompt", [10**6]), ("prompt", [[3, 1]]), ("prompt", ["a"] * 257),
        ("prompt", [1.5]), ("prompt", {"a": 1}), ("prompt", [["a"]]), ("stream", "yes"), ("echo", 1),
        ("suffix", "x"), ("user", 5), ("nonsense", 1), ("model", 5), ("model", ""), ("model", "x" * 201),
    ],
)  # fmt: skip
def test_value_out_of_its_limits_is_refused_by_name(site, name, value):
    found = site.ask("/v1/completions", {"model": "counts", "prompt": "the", name: value})
    assert found.status == 422, found.body
    said = found.json["error"]
    assert said["param"].partition(".")[0] == name or name in ("nonsense",)
    assert name in said["message"] or "id" in said["message"]


def test_texts_times_tokens_are_bounded(site):
    found = site.complete("counts", ["a"] * 4, n=60, max_tokens=16_000)
    assert (found.status, found.json["error"]["code"]) == (422, "too_many")
    assert site.complete("counts", ["a"] * 100, n=3).json["error"]["param"] == "n"


# 27, 28: names and symbols


@pytest.mark.parametrize(
    "name",
    [
        "../counts",
        "/etc/passwd",
        "./counts",
        "runs/counts",
        "counts/",
        "counts\0",
        "COUNTS",
        "~",
        "http://x/",
    ],
)
def test_model_is_a_name_of_the_list_never_a_path(site, name):
    found = site.complete(name, "the")
    assert (found.status, found.json["error"]["code"]) == (404, "model_not_found")


def test_symbols_in_a_text_are_text(site):
    ids = site.ask("/tokenize", {"model": "counts", "prompt": "a </s><s> b"}).json["tokens"]
    assert not {1, 2} & set(ids)
    assert site.ask("/detokenize", {"model": "counts", "tokens": ids}).json["prompt"] == "a </s><s> b"


# 26: regular expressions of clients


@pytest.mark.parametrize("name", ["guided_regex", "regex", "pattern", "grammar", "response_format"])
def test_no_parameter_is_a_pattern_that_would_be_run(site, name):
    found = site.complete("counts", "the", max_tokens=1, **{name: "(a+)+$"})
    assert (found.status, found.json["error"]["param"]) == (422, name)


def test_stop_texts_are_texts_and_no_patterns(site):
    whole = site.complete("counts", "the", max_tokens=8, temperature=0).json["choices"][0]["text"]
    asked = site.complete("counts", "the", max_tokens=8, temperature=0, stop=[".*", "(a+)+$"])
    assert asked.json["choices"][0]["text"] == whole


# 29: what one key can take: there is one, so it is what the server takes on


def test_requests_beyond_the_queue_are_refused_with_a_time_to_wait(runs):
    with serving(runs["counts"], rows=1, waiting=1) as site:
        (model,) = site.shelf.loaded
        begin, blocked = threading.Event(), threading.Event()
        model.worker._post(lambda: _held(begin, blocked))
        assert begin.wait(20)
        first = [threading.Thread(target=site.complete, args=("counts", "the")) for _ in range(2)]
        for thread in first:
            thread.start()
        until(lambda: model.worker.taken == 2)
        refused = site.complete("counts", "the")
        blocked.set()
        for thread in first:
            thread.join(20)
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert refused.json["error"]["type"] == "rate_limit_error"
        assert site.complete("counts", "the").status == 200


def _held(begin, blocked):
    begin.set()
    blocked.wait(20)


# 29, 30: the key


@pytest.mark.parametrize(
    "path", ["/v1/models", "/ready", "/metrics", "/openapi.json", "/tokenizer_info", "/x"]
)
def test_key_guards_every_route(locked, path):
    assert locked.ask(path, Authorization="Bearer wrong").status == 401
    assert locked.ask(path, Authorization=f"Bearer {KEY} ").status != 401


def test_every_route_that_tells_something_of_a_run_needs_the_key(locked):
    described = locked.ask("/openapi.json").json["paths"]
    routes = [(path, method) for path, methods in described.items() for method in methods]
    assert {"/api/runs", "/api/next", "/v1/completions"} <= {path for path, _ in routes}
    for path, method in routes:
        body = {} if method == "post" else None
        found = locked.ask(path, body, Authorization="")
        assert found.status == (200 if path in security.OPEN else 401), (path, found.status)


def test_live_and_the_files_of_the_page_need_no_key(locked):
    for path in ("/live", "/", "/page/app.js", "/page/page.css"):
        assert locked.ask(path, Authorization="").status == 200


@pytest.mark.parametrize(
    "path", ["/page/../api/runs", "/page/..%2fapi%2fruns", "/page/%2e%2e/v1/models", "/page//api/runs"]
)
def test_no_way_leads_from_the_files_of_the_page_to_what_needs_the_key(locked, path):
    assert locked.ask(path, Authorization="").status == 404


@pytest.mark.parametrize("given", ["", KEY, f"Bearer {KEY}x", "Bearer", f"Basic {KEY}", "Bearer \xff"])
def test_wrong_keys_are_refused(locked, given):
    found = locked.ask("/v1/models", Authorization=given)
    assert (found.status, found.json["error"]["type"]) == (401, "authentication_error")
    assert KEY not in found.body.decode()


def test_browser_can_send_the_key_as_a_password(locked):
    import base64

    packed = base64.b64encode(f":{KEY}".encode()).decode()
    assert locked.ask("/v1/models", Authorization=f"Basic {packed}").status == 200
    assert locked.ask("/v1/models", Authorization="").headers["www-authenticate"].startswith("Basic")


def test_keys_are_compared_in_constant_time(locked, monkeypatch):
    seen = []
    monkeypatch.setattr(security.hmac, "compare_digest", lambda a, b: seen.append((a, b)) or a == b)
    assert locked.ask("/v1/models").status == 200
    assert locked.ask("/v1/models", Authorization="Bearer x").status == 401
    assert [len(each) for pair in seen for each in pair] == [32] * 4  # hashes: the length is hidden too


# 31, 32, 33: what answers and logs say


def test_errors_name_no_files_and_no_code(site, runs):
    answers = [
        site.complete("counts", [10**6]), site.complete("nothing", "the"), site.ask("/v1/completions", b"{"),
        site.ask("/x"), site.ask("/v1/models", method="DELETE", body=b"{}"),
        site.complete("words", "the", n=99),
    ]  # fmt: skip
    for found in answers:
        assert set(found.json["error"]) == {"message", "type", "param", "code"}
        text = found.body.decode()
        assert "Traceback" not in text
        assert str(runs["counts"].parent) not in text
        assert ".py" not in text


def test_internal_error_is_opaque_and_the_server_lives(site, monkeypatch):
    from nextword.server import tokens

    def broken(*given):
        raise RuntimeError("secret detail of /home/someone")

    monkeypatch.setattr(tokens, "from_ids", broken)
    found = site.ask("/detokenize", {"tokens": [3]})
    assert (found.status, found.json["error"]["code"]) == (500, "internal_error")
    assert "secret" not in found.body.decode()
    monkeypatch.undo()
    assert site.ask("/detokenize", {"tokens": [3]}).status == 200


def test_messages_of_internal_errors_are_not_logged_since_they_may_hold_prompts():
    try:
        {}["a secret prompt"]
    except KeyError as error:
        said = place_of(error)
    assert said.startswith("KeyError (test_security.py, line ")
    assert "secret" not in said


def test_prompts_are_not_logged(site, caplog):
    with caplog.at_level(logging.DEBUG):
        site.complete("counts", "my secret prompt", max_tokens=1)
        site.complete("counts", "my secret prompt", max_tokens=-1)
    assert "secret" not in caplog.text


@pytest.mark.parametrize("path", ["/v1/models", "/x", "/live", "/openapi.json"])
def test_every_answer_has_the_headers_of_a_safe_page(site, path):
    headers = site.ask(path).headers
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def test_no_documentation_pages_with_scripts_of_others(site):
    assert site.ask("/docs").status == 404
    assert site.ask("/redoc").status == 404


# clients that leave


@pytest.mark.parametrize("stream", [True, False])
def test_client_that_leaves_frees_its_rows_within_a_second(site, stream):
    worker = next(model.worker for model in site.shelf.loaded if model.name == "lstm")
    body = {"model": "lstm", "max_tokens": 16_000, "logit_bias": {"2": -100}, "stream": stream}
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=20)
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    until(lambda: worker.running > 0)
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.sock.close()
    until(lambda: worker.running == 0 and worker.taken == 0, seconds=20)
