"""The same random numbers and one thread in every test of this folder, whatever ran before."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_seed():
    import torch  # must wait until the processor is known

    torch.manual_seed(0)
    torch.set_num_threads(1)
