"""A server that was given no run trains small models itself, and answers meanwhile."""

import asyncio
import threading

import pytest
from served import TEXT

from nextword.api.serve import ServeSettings
from nextword.server import first


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A small text instead of the embedded corpus, and a moment instead of a minute."""
    (tmp_path / "t.txt").write_text(TEXT)
    monkeypatch.setattr(first, "DEFAULT", str(tmp_path / "t.txt"))
    monkeypatch.setattr(first, "MINUTES", "0.05")
    return tmp_path / "runs"


def train(training):
    """Train in a thread of its own: a browser that another test opened has an event loop in this one."""
    thread = threading.Thread(target=lambda: asyncio.run(training.run()))
    thread.start()
    return thread


def test_server_listens_before_anything_is_trained(small):
    said = []
    shelf = first.first_shelf(ServeSettings(), said.append, small)
    assert (shelf.names, list(shelf.expected), shelf.is_ready) == ([], ["ngram", "lstm"], False)
    assert len(said) == 2


def test_counts_are_served_when_they_are_counted_and_kept(small, monkeypatch):
    monkeypatch.setattr(first.importlib.util, "find_spec", lambda name: None)  # without torch
    shelf = first.first_shelf(ServeSettings(), lambda said: None, small)
    said = []
    train(first.Training(shelf, said.append)).join()
    assert (shelf.names, shelf.expected, shelf.is_ready) == (["ngram"], {}, True)
    assert said == ["'ngram' is served now"]
    shelf.close()
    again = []
    assert first.first_shelf(ServeSettings(), again.append, small).names == ["ngram"]
    assert again == []


def test_training_that_fails_says_why_and_the_server_goes_on(small, monkeypatch, caplog):
    monkeypatch.setattr(first.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(first, "DEFAULT", str(small.parent / "missing.txt"))
    shelf = first.first_shelf(ServeSettings(), lambda said: None, small)
    train(first.Training(shelf, print)).join()
    assert (shelf.names, shelf.expected) == ([], {})
    assert "'ngram' could not be trained: " in caplog.text
    assert "missing.txt: there is no such file" in caplog.text


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_network_is_served_when_it_is_trained(small):
    shelf = first.first_shelf(ServeSettings(), lambda said: None, small)
    train(first.Training(shelf, print)).join()
    assert shelf.names == ["ngram", "lstm"]
    assert shelf.expected == {}
    shelf.close()


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_training_ends_with_the_server(small, monkeypatch):
    monkeypatch.setattr(first, "MINUTES", "5")
    shelf = first.first_shelf(ServeSettings(), lambda said: None, small)
    training = first.Training(shelf, print)
    thread = train(training)
    while training.process is None:
        pass
    shelf.is_draining = True
    training.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert training.process.poll() is not None
