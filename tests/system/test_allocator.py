"""Freed memory stays with the process where glibc can be told so."""

import platform
import subprocess
import sys

import pytest

from nextword.system.allocator import keep_big_arrays

GLIBC = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"

# Three arrays of 64 MB are made and freed again and again; every new page is one fault.
FAULTS = """
import resource, sys
from nextword.system import allocator
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
    code = "from nextword.system.allocator import keep_big_arrays as k; raise SystemExit(not k())"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_big_arrays() is False
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("musl", "1.2"))
    assert keep_big_arrays() is False
