"""The compiled loops of generative classifiers: n-grams get numbers, and texts scores under all labels.

N-grams are found by 64-bit hashes in a table with open addressing. Each has a list of the labels that have
seen it; a text is scored from short to long n-grams, with one dense row of probabilities over labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.system.compiled import compiled

Array = np.ndarray[Any, np.dtype[Any]]

_U = np.uint64
_JOIN, _MIX = _U(0xC6A4A7935BD1E995), _U(0x9E3779B97F4A7C15)
_EVERY = 8  # tokens whose probabilities are multiplied before a logarithm is taken


@compiled(nogil=True)
def _longer(key: Any, token: Any) -> Any:
    """Return the key of an n-gram with one more token before it; 0 is never a key."""
    key = (key + _U(1)) * _JOIN + token
    key = (key ^ (key >> _U(31))) * _MIX
    return key if key != _U(0) else _U(1)


@compiled(nogil=True)
def _find(keys: Array, key: Any) -> Any:
    """Return the slot of a key, or the free slot where it would be."""
    mask = _U(len(keys) - 1)
    slot = (key ^ (key >> _U(29))) & mask
    while keys[slot] != _U(0) and keys[slot] != key:
        slot = (slot + _U(1)) & mask
    return slot


@compiled(nogil=True)
def _grown(keys: Array, rows: Array) -> Any:
    more = np.zeros(2 * len(keys), np.uint64)
    numbers = np.zeros(2 * len(keys), np.int32)
    for at in range(len(keys)):
        if keys[at] != _U(0):
            slot = _find(more, keys[at])
            more[slot], numbers[slot] = keys[at], rows[at]
    return more, numbers


@compiled(nogil=True)
def number(tokens: Array, bounds: Array, length: int, keys: Array, rows: Array, used: int) -> Any:
    """Number the n-grams of one length: a row for each, new ones from ``used`` on.

    Returns the row of the n-gram that ends at each token (-1 near the beginning of a text), the table, and
    how many rows there are now.
    """
    found = np.full(len(tokens), -1, np.int32)
    for text in range(len(bounds) - 1):
        for at in range(bounds[text] + length - 1, bounds[text + 1]):
            key = _U(0)
            for back in range(length):
                key = _longer(key, tokens[at - back])
            slot = _find(keys, key)
            if keys[slot] == _U(0):
                if 2 * used > len(keys):
                    keys, rows = _grown(keys, rows)
                    slot = _find(keys, key)
                keys[slot], rows[slot] = key, used
                used += 1
            found[at] = rows[slot]
    return found, keys, rows, used


@compiled(nogil=True)
def score(
    tokens: Array,
    bounds: Array,
    keys: Array,
    rows: Array,
    starts: Array,
    labels: Array,
    gains: Array,
    losses: Array,
    classes: int,
    order: int,
    floor: float,
) -> Any:
    """Return Σ log p(token | the tokens before, label) for each text and label.

    p_m = gain(n-gram) + loss(its context) p_{m-1}, where a label that has not seen the context keeps p_{m-1}:
    every interpolated smoothing has this form. ``gains`` are those of n-grams, ``losses`` of contexts.
    """
    texts = len(bounds) - 1
    found_NC = np.zeros((texts, classes))
    p_C, product_C = np.zeros(classes), np.ones(classes)
    before, now = np.zeros(order + 1, np.int64), np.zeros(order + 1, np.int64)
    for text in range(texts):
        before[:] = -1
        before[0] = now[0] = 0
        product_C[:] = 1.0
        for at in range(bounds[text], bounds[text + 1]):
            p_C[:] = floor
            key, is_seen = _U(0), True
            now[1:] = -1
            for n in range(1, min(order, at - bounds[text] + 1) + 1):
                context = before[n - 1]
                if context < 0:
                    break
                for entry in range(starts[context], starts[context + 1]):
                    p_C[labels[entry]] *= losses[entry]
                if not is_seen:
                    continue
                key = _longer(key, tokens[at - n + 1])
                slot = _find(keys, key)
                is_seen = keys[slot] != _U(0)
                if is_seen:
                    now[n] = rows[slot]
                    for entry in range(starts[now[n]], starts[now[n] + 1]):
                        p_C[labels[entry]] += gains[entry]
            for n in range(1, order + 1):
                before[n] = now[n]
            is_last = at == bounds[text + 1] - 1
            for c in range(classes):
                product_C[c] *= p_C[c]
            if is_last or (at - bounds[text]) % _EVERY == _EVERY - 1:
                for c in range(classes):
                    found_NC[text, c] += np.log(max(product_C[c], 1e-300))
                    product_C[c] = 1.0
    return found_NC
