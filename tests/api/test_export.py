"""`nextword.export`: ARPA files."""

import pytest

import nextword
from nextword.core.errors import ConfigError


def test_export_and_import_keep_the_numbers(run, tmp_path):
    path = nextword.export(run, tmp_path / "m.arpa")
    again = nextword.import_(path, tmp_path / "r")
    assert again.score("the students read").nll == pytest.approx(run.score("the students read").nll, abs=1e-5)
    with pytest.raises(ConfigError, match="unknown export format 'docx'"):
        run.export(tmp_path / "x", "docx")
