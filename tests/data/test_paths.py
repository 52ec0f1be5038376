"""Names on the command line become files, or an error that says what they are."""

import pytest

from nextword.core.errors import DataError
from nextword.data.paths import resolve


def test_run_is_not_a_text(tmp_path):
    (tmp_path / "MANIFEST.json").write_text("{}")
    (tmp_path / "README.md").write_text("a model card")
    with pytest.raises(DataError, match="this is a run, not a text"):
        resolve(tmp_path)
