"""What the page asks: each answer is that of the function behind it."""

import json

import pytest
from served import TEXT, serving

import nextword
from nextword.api.reasons import reasons
from nextword.api.typed import typed
from nextword.page import files

FAMILIES = ["words", "counts", "lstm", "transformer"]


@pytest.mark.parametrize("name", FAMILIES)
def test_next_words_are_those_of_the_run(site, runs, name):
    found = site.ask("/api/next", {"model": name, "text": "the cat sat on the ", "top": 3}).json
    own = typed(nextword.load(runs[name]), "the cat sat on the ", 3)
    assert [word["text"] for word in found["words"]] == [word.text for word in own.words]
    assert found["words"][0]["probability"] == pytest.approx(own.words[0].probability, rel=1e-4)
    total = sum(word["probability"] for word in found["words"]) + found["unknown"] + found["others"]
    assert total == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_reasons_are_those_of_the_run(site, runs, name):
    word = site.ask("/api/next", {"model": name, "text": "the cat ", "top": 1}).json["words"][0]["text"]
    found = site.ask("/api/why", {"model": name, "text": "the cat ", "word": word}).json
    own = reasons(nextword.load(runs[name]), "the cat ", word)
    assert found["probability"] == pytest.approx(own.probability, rel=1e-4)
    assert len(found["tokens"]) == len(own.tokens)


@pytest.mark.parametrize("name", FAMILIES)
def test_surprise_is_that_of_score(site, runs, name):
    text = "the cat sat\non a  rug"
    found = site.ask("/api/surprise", {"model": name, "text": text}).json
    own = nextword.load(runs[name]).score(text)
    assert "".join(token["text"] for token in found["tokens"]) == text
    assert "".join(word["text"] for word in found["words"]) == text
    assert found["predictions"] == len(own.tokens)
    assert found["bits_per_byte"] == pytest.approx(own.bits_per_byte, rel=1e-4)
    assert sum(token["bits"] for token in found["tokens"]) == pytest.approx(
        -own.logprob / 0.6931471805599453, rel=1e-4
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_alternatives_of_a_token_are_the_distribution_there(site, runs, name):
    text = "the cat sat on the mat"
    found = site.ask("/api/alternatives", {"model": name, "text": text, "number": 2, "top": 3}).json
    token = nextword.load(runs[name]).score(text).tokens[2]
    assert found["text"] == token.text
    assert found["probability"] == pytest.approx(2.718281828459045**token.logprob, rel=1e-3)
    assert len(found["likely"]) == 3


@pytest.mark.parametrize("name", FAMILIES)
def test_lines_are_scored_one_by_one(site, runs, name):
    lines = ["the cat sat on the mat .", "", "zebra"]
    found = site.ask("/api/lines", {"model": name, "lines": lines}).json["lines"]
    assert [each["tokens"] > 0 for each in found] == [True, False, True]
    assert found[1]["bits"] is None
    assert found[0]["bits_per_byte"] < found[2]["bits_per_byte"]
    run = nextword.load(runs[name])
    if run.tokenizer.unit == "line":  # a line by itself is then what `score` reads, its unknown words spelled
        assert found[2]["bits_per_byte"] == pytest.approx(run.score("zebra").bits_per_byte, rel=1e-4)


def test_runs_are_all_that_stand_beside_the_served_ones(site, runs):
    first = site.ask("/api/runs")
    found = {run["name"]: run for run in first.json["runs"]}
    assert set(found) == set(runs)
    assert found["lstm"]["curves"]["loss"]
    assert [found[name]["place"] for name in runs] == [0, 1, 2, 3]
    again = site.ask("/api/runs", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_runs_of_one_name_in_two_folders_are_told_apart(tmp_path):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.txt").write_text(TEXT)
        nextword.train(tmp_path / folder / "t.txt", model="ngram", out=tmp_path / folder / "counts")
    nextword.train(tmp_path / "second" / "t.txt", model="ngram", out=tmp_path / "second" / "other")
    with serving(tmp_path / "first" / "counts", tmp_path / "second" / "other") as site:
        rows = site.ask("/api/runs").json["runs"]
    assert [(row["name"], row["served"]) for row in rows] == [
        ("counts", True), ("second/counts", False), ("other", True)
    ]  # fmt: skip
    assert len({row["place"] for row in rows}) == 3


def test_impossible_logarithms_are_null(tmp_path):
    (tmp_path / "t.txt").write_text(TEXT)
    nextword.train(tmp_path / "t.txt", model="ngram-backoff", out=tmp_path / "runs" / "zero")
    with serving(tmp_path / "runs" / "zero") as site:
        found = site.ask("/api/surprise", {"model": "zero", "text": "the cat zebra"})
        assert found.status == 200
        assert found.json["perplexity"] is None
        lines = site.ask("/api/lines", {"model": "zero", "lines": ["the cat zebra"]})
        assert lines.json["lines"][0]["bits"] is None


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("next", {"model": "nobody"}, 404, "there is no such model"),
        ("next", {"model": "words", "text": "x" * 20_001}, 422, "'text'"),
        ("next", {"model": "words", "top": 51}, 422, "'top'"),
        ("next", {"model": "words", "more": 1}, 422, "'more'"),
        ("next", {"model": "words", "text": "\ud800"}, 422, "surrogate"),
        ("why", {"model": "words", "word": "zebra"}, 400, "choose a word that is shown"),
        ("alternatives", {"model": "words", "text": "the", "number": 77}, 400, "token 78 was asked for"),
        ("surprise", {"model": "words", "text": ""}, 422, "'text'"),
        ("lines", {"model": "words", "lines": ["a\nb"]}, 422, "newline"),
        ("lines", {"model": "words", "lines": ["a"] * 513}, 422, "'lines'"),
    ],
)
def test_wrong_questions_get_a_sentence(site, path, body, status, said):
    found = site.ask(f"/api/{path}", json.dumps(body).encode())
    assert found.status == status
    assert said in found.json["error"]["message"]


def test_page_and_its_files_need_no_key_and_the_rest_does(runs):
    with serving(runs["words"], key="a-key-of-sixteen-letters") as site:
        site.key = None
        assert site.ask("/").status == 200
        assert site.ask("/page/app.js").status == 200
        assert site.ask("/api/runs").status == 401
        assert site.ask("/api/next", {"model": "words"}).status == 401
        assert site.ask("/page/../api/runs").status in (401, 404)


OUTSIDE = ["/page/nothing.js", "/page/__init__.py", "/page/..%2fpage.css", "/page/", "/page/a/b"]


@pytest.mark.parametrize("path", OUTSIDE)
def test_only_the_page_s_own_files_are_handed_out(site, path):
    assert site.ask(path).status == 404


@pytest.mark.parametrize("name", sorted(files()))
def test_files_have_their_types_and_the_policy(site, name):
    found = site.ask(f"/page/{name}")
    assert found.status == 200
    kind = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}
    assert found.headers["content-type"].split(";")[0] == kind[name.rpartition(".")[2]]
    assert "default-src 'self'" in found.headers["content-security-policy"]
    assert "unsafe" not in found.headers["content-security-policy"]
    assert found.headers["x-content-type-options"] == "nosniff"
