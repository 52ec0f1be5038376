"""Signals: the first one saves, the second one leaves at once."""

import signal

import pytest

from nextword.system.signals import Stop


def test_second_signal_leaves_at_once(monkeypatch):
    codes = []
    monkeypatch.setattr("os._exit", codes.append)
    with Stop() as stop:
        stop.save_on_signal()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert codes == [143]


def test_signal_before_there_is_anything_to_save_does_what_it_always_does():
    with pytest.raises(KeyboardInterrupt), Stop():
        signal.raise_signal(signal.SIGINT)
    with Stop() as stop:
        stop.save_on_signal()
        signal.raise_signal(signal.SIGTERM)
        assert (stop.name, stop.exit_code) == ("SIGTERM", 0)
