"""The reference model that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from table_models import TableModel, make_table_model


@pytest.fixture(scope="session")
def table_model() -> Callable[..., TableModel]:
    return make_table_model
