"""A process that dies before any single call of a save: there is always a whole checkpoint to go on from.

Faults 1-4: in the middle of a file, between rename and pointer, while the oldest goes, in the first save.
"""

import itertools
import json
import subprocess
import sys

import pytest
from places import SUPPORT

SCRIPT = SUPPORT / "every_call.py"


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path_factory.mktemp("calls")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("scene", "old", "new"), [("first", None, 10), ("second", 10, 20), ("third", 20, 30)]
)
def test_before_any_call_there_is_the_old_one_and_from_one_call_on_the_new_one(scenes, scene, old, new):
    found = scenes[scene]["found"]
    assert scenes[scene]["calls"] > 15
    assert [step for step, _ in itertools.groupby(found)] == [old, new]


def test_deletion_of_the_oldest_begins_when_the_new_one_is_found(scenes):
    """The calls of the third save that come on top of the second's are those of the deletion."""
    more = scenes["third"]["calls"] - scenes["second"]["calls"]
    assert more > 3
    assert scenes["third"]["found"][-more:] == [30] * more
