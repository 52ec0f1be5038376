"""Names that do not exist: what may have been meant, and what is allowed."""

from nextword.core.suggestions import listed, same_but_case, unknown


def test_nothing_to_choose_from_is_said():
    assert unknown("thing", "x", []) == "unknown thing 'x'; there are none to choose from"


def test_long_list_is_cut_and_names_the_command_that_shows_all():
    many = [f"name{number}" for number in range(40)]
    said = unknown("thing", "name4O", many, more="nextword list thing")
    assert said.startswith("unknown thing 'name4O'; did you mean 'name4")
    assert "name11 and 28 more (nextword list thing shows all)" in said
    assert "name12" not in said
    assert listed(many[:14]) == ", ".join(many[:14])


def test_name_that_differs_in_case_only_is_found_if_there_is_just_one():
    assert same_but_case("A", ["a", "b"]) == "a"
    assert same_but_case("Ab", ["aB", "AB"]) is None
