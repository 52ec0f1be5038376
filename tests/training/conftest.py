"""A text that the trainings of this folder learn from, a copy for each file of tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    from small_trainings import TEXT  # loads torch, which must wait until the processor is known

    path = tmp_path_factory.mktemp("text") / "t.txt"
    path.write_text(TEXT)
    return path
