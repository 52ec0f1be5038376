"""A text that all tests of this folder share."""

from __future__ import annotations

import numpy as np
import pytest
from packed_texts import zipf_text


@pytest.fixture(scope="session")
def text() -> np.ndarray:
    """A text of some thousand words over 57 types."""
    return zipf_text(600, 60)
