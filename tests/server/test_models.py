"""Served runs that are trained again, deleted or damaged: one clear answer each, the others unaffected."""

import shutil

import pytest
from served import serving, until

import nextword
from nextword.server import worker

OLD, NEW = "the cat sat\n" * 30, "the dog ran\n" * 30


def train(folder, name, text):
    (folder / "t.txt").write_text(text)
    nextword.train(
        str(folder / "t.txt"), model="ngram", out=str(folder / name), set={"model.order": 2}, overwrite=True
    )


@pytest.fixture
def two(tmp_path):
    """A server of two runs, and their folder."""
    for name in ("first", "second"):
        train(tmp_path, name, OLD)
    with serving(tmp_path / "first", tmp_path / "second") as site:
        yield site, tmp_path


def text_of(site, name="first"):
    return site.complete(name, "the", max_tokens=2, temperature=0).json["choices"][0]["text"]


def code_of(site, name="first"):
    found = site.complete(name, "the", max_tokens=1)
    return found.json["error"]["code"] if found.status != 200 else "fine"


def test_run_that_is_trained_again_answers_with_the_new_model(two):
    site, folder = two
    assert text_of(site) == " cat sat"
    train(folder, "first", NEW)
    until(lambda: text_of(site) == " dog ran")
    assert text_of(site, "second") == " cat sat"


def test_deleted_run_says_so_and_comes_back_when_it_is_trained_again(two):
    site, folder = two
    shutil.rmtree(folder / "first")
    until(lambda: code_of(site) == "model_deleted")
    assert site.complete("first", "the").status == 404
    assert text_of(site, "second") == " cat sat"
    assert [each["id"] for each in site.ask("/v1/models").json["data"]] == ["second"]
    train(folder, "first", NEW)
    until(lambda: code_of(site) == "fine")
    assert text_of(site) == " dog ran"


def test_damaged_run_says_so_without_naming_files(two):
    site, folder = two
    damaged = max((folder / "first").glob("*.npy"), key=lambda path: path.stat().st_size)
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(bytes(data))
    until(lambda: code_of(site) == "model_damaged")
    found = site.complete("first", "the")
    assert found.status == 503
    assert damaged.name not in found.body.decode()
    assert str(folder) not in found.body.decode()
    assert text_of(site, "second") == " cat sat"


def test_request_under_way_finishes_with_the_model_it_began_with(two):
    import threading

    site, folder = two
    asked = {"max_tokens": 3000, "temperature": 0, "logit_bias": {"2": -100}}
    got = []
    thread = threading.Thread(target=lambda: got.append(site.complete("first", "the", **asked)))
    worker = site.shelf.loaded[0].worker
    thread.start()
    until(lambda: worker.running > 0 or got)
    train(folder, "first", NEW)
    until(lambda: text_of(site) == " dog ran")
    thread.join(60)
    assert got[0].status == 200
    assert "dog" not in got[0].json["choices"][0]["text"]


def test_model_whose_engine_cannot_start_says_so_and_is_tried_again(tmp_path, monkeypatch):
    def broken(*given, **named):
        raise MemoryError

    engine = worker.Engine
    monkeypatch.setattr(worker, "Engine", broken)
    train(tmp_path, "first", OLD)
    with serving(tmp_path / "first") as site:
        assert [code_of(site) for _ in range(2)] == ["internal_error"] * 2
        assert site.shelf.loaded[0].worker.taken == 0
        monkeypatch.setattr(worker, "Engine", engine)
        assert text_of(site) == " cat sat"


def test_two_folders_of_one_name_are_refused(tmp_path):
    from nextword.api.serve import find_runs
    from nextword.core.errors import ConfigError

    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        train(tmp_path / part, "same", OLD)
    with pytest.raises(ConfigError, match="both be served as 'same'"):
        find_runs([str(tmp_path / part / "same") for part in ("a", "b")])
