"""Turn a fitted model into one of few bits, and say what that saves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nextword.core.display import show_size
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Note, Stage
from nextword.ngram.model import NgramModel
from nextword.ngram.prune import PRUNABLE
from nextword.ngram.quantized import QuantizedTrie
from nextword.ngram.settings import NgramSettings

_ALLOWED = [name for name in PRUNABLE if name != "stupid"]  # probabilities that back off


def check(settings: NgramSettings) -> None:
    """Raise a ConfigError if the smoothing has no backoff weights that follow from its probabilities."""
    if settings.bits and settings.smoothing not in _ALLOWED:
        raise ConfigError(
            f"'model.bits' {settings.bits} does not work with 'model.smoothing' {settings.smoothing}; use "
            f"one of {', '.join(_ALLOWED)}, or 'model.bits' 0"
        )


def quantize(model: NgramModel, bits: int) -> NgramModel:
    """Return the model as it is after being saved in few bits and loaded; ``exact`` is the one before."""
    if not model.is_probability or model.trie.fallback != "shorter":
        raise ConfigError(
            f"'model.bits' is {bits}, but this model gives scores that do not sum to one; use 'model.bits' 0"
        )
    stored = QuantizedTrie.of(model.trie, bits)
    return NgramModel(stored.trie(), model.smoothing, True, model.closed, stored, exact=model)


def at_end(fitting: Iterable[Event], bits: int) -> Iterator[Event]:
    """Pass on the events of a fit, and quantize the model at its end."""
    for event in fitting:
        if not isinstance(event, Done):
            yield event
            continue
        yield Stage(f"quantizing to {bits} bits")
        model = quantize(event.result, bits)
        assert model.quantized is not None
        yield Note(
            f"{bits} bits a probability: {show_size(model.quantized.nbytes)} instead of "
            f"{show_size(event.result.trie.nbytes)}"
        )
        yield Done(model)
