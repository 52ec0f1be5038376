"""Facts of a run, read whatever version wrote them."""

from nextword.runs.facts import Facts, from_json


def test_facts_of_another_version_are_read_as_far_as_they_are_known():
    assert from_json({"seed": 3, "new": 1, "data": {"bytes": 5, "novel": 2, "names": ["a"]}}).data.bytes == 5
    assert from_json("nonsense") == Facts()
