"""The clock of a command keeps its promises."""

import math
import subprocess
import sys
import time

from nextword.system.launch import process_start
from nextword.training.clock import LEAVING, Clock, saving_seconds


def test_no_minutes_is_no_limit():
    clock = Clock.minutes(None)
    clock.reserve("save", 100)
    assert clock.left() == math.inf
    assert clock.share(0.0) == 0.0
    assert clock.has_time_for(1e9)


def test_time_for_the_end_is_kept_back():
    clock = Clock.minutes(1)
    before = clock.left()
    assert 59 - LEAVING < before <= 60 - LEAVING
    clock.reserve("save", 10)
    assert clock.left() < before - 10
    assert not clock.has_time_for(50)
    clock.reserve("save", 1)  # measured again
    assert clock.has_time_for(50)
    clock.release("save")
    assert clock.left() > before - 1


def test_share_goes_from_nothing_to_all():
    clock = Clock(100.0, began=time.monotonic() - 60)
    assert 0.3 < clock.share(40.0) < 0.4
    assert Clock(10.0, began=time.monotonic() - 60).share(0.0) == 1.0


def test_a_part_never_goes_past_the_end():
    clock = Clock(10.0)
    assert clock.part(3.0).left() <= 3.0
    assert clock.part(1e6).left() < 10.0


def test_a_command_began_when_its_process_did():
    code = (
        "import time\n"
        "from nextword.system.launch import process_start\n"
        "time.sleep(0.3)\n"
        "print(time.monotonic() - process_start())"
    )
    before = time.monotonic()
    age = float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert 0.3 <= age <= time.monotonic() - before + 0.05
    assert process_start() < time.monotonic()


def test_a_command_that_a_script_becomes_does_not_count_the_time_of_the_script():
    code = (
        "import time; from nextword.system import launch; launch.MOST_STARTING = 0.1\n"
        "print(launch._loaded - launch.process_start())"
    )
    script = ["sh", "-c", 'sleep 1; exec "$0" -c "$1"', sys.executable, code]
    assert float(subprocess.run(script, capture_output=True, check=True).stdout) <= 0.1 + 1e-6


def test_saving_more_takes_longer(tmp_path):
    assert saving_seconds(40_000_000_000, tmp_path) > saving_seconds(1_000, tmp_path) >= 0
    assert saving_seconds(1_000, tmp_path / "nowhere") == 0.0
