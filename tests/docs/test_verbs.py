"""A verb is one file of its name in ``cli``, in ``api`` and in ``docs``, and its page lists its options."""

import keyword

import option_tables
import pytest
from places import ROOT

VERBS = sorted(option_tables.commands())


def test_help_names_every_verb_once():
    assert len(VERBS) == len(set(VERBS)) >= 19


@pytest.mark.parametrize("verb", VERBS)
def test_verb_is_a_file_of_its_name_everywhere(verb):
    module = f"{verb}_" if keyword.iskeyword(verb) else verb.replace("-", "_")
    for folder in ("cli", "api"):
        assert (ROOT / "nextword" / folder / f"{module}.py").is_file()
    assert option_tables.page(verb).is_file()
    assert (ROOT / "tests" / "cli" / f"test_{verb.replace('-', '_')}.py").is_file()


@pytest.mark.parametrize("verb", VERBS)
def test_options_of_a_page_are_those_of_the_command(verb):
    """Run python tests/support/option_tables.py after a change of options or help texts."""
    found = option_tables.BLOCK.findall(option_tables.page(verb).read_text(encoding="utf-8"))
    assert found == [option_tables.block(verb)]
