"""Big arrays are kept by the program, once torch comes, and never by the library."""

import platform
import subprocess
import sys

import pytest

from nextword.core.allocator import BeforeTorch, keep_big_arrays, prepare

GLIBC = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"

# Three arrays of 64 MB are made and freed again and again; every new page is one fault.
FAULTS = """
import resource, sys
from nextword.core import allocator
assert sys.argv[1] == "plain" or allocator.keep_big_arrays()
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
bytearray(64_000_000)
before = faults()
for _ in range(5): bytearray(b"x") * 64_000_000
print(faults() - before)
"""


def _faults(how):
    return int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, check=True).stdout)


@pytest.mark.skipif(not GLIBC, reason="the settings are glibc's")
def test_freed_pages_stay_with_the_process():
    assert _faults("kept") < _faults("plain") / 3


@pytest.mark.skipif(not GLIBC, reason="the settings are glibc's")
def test_glibc_takes_all_three_settings():
    code = "from nextword.core.allocator import keep_big_arrays as k; raise SystemExit(not k())"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_big_arrays() is False
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("musl", "1.2"))
    assert keep_big_arrays() is False


def test_it_waits_for_torch_and_then_steps_aside(monkeypatch):
    called = []
    monkeypatch.setattr("nextword.core.allocator.keep_big_arrays", lambda: called.append(1))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    prepare()
    finder = sys.meta_path[0]
    assert isinstance(finder, BeforeTorch)
    assert finder.find_spec("numpy", None) is None
    assert not called
    assert finder.find_spec("torch", None) is None
    assert called == [1]
    assert finder not in sys.meta_path


def test_importing_the_library_changes_no_allocator():
    code = (
        "import sys, nextword, nextword.core.allocator as a\n"
        "sys.exit(any(isinstance(finder, a.BeforeTorch) for finder in sys.meta_path))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
