"""`nextword.list_data`: the corpora by name."""

import nextword


def test_corpora_are_listed():
    assert "sotu" in nextword.list_data()
