"""Small models over real tokenizers, and the same models without their fast path."""

from __future__ import annotations

from typing import Any

import count_models
import pytest


@pytest.fixture(scope="session")
def trained() -> Any:
    """(model, tokenizer) of a small text."""
    return count_models.make


@pytest.fixture(scope="session")
def plain() -> Any:
    """A model that hides everything but the contract."""
    return count_models.Plain


@pytest.fixture(scope="session")
def text_maker() -> Any:
    return count_models.some_text
