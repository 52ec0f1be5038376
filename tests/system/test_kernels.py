"""What oneDNN compiles for shapes that are not used any more is not kept."""

import os
import subprocess
import sys

import pytest

from nextword.system import kernels


def test_capacities_are_set_and_those_of_the_user_stay(monkeypatch):
    first, second = kernels._CAPACITIES
    monkeypatch.setenv(first, "7")
    monkeypatch.setenv(second, "")
    monkeypatch.delenv(second)
    kernels.keep_few()
    assert (os.environ[first], os.environ[second]) == ("7", str(kernels.KEPT))


_COUNT = """
import ctypes, sys
from nextword.system import kernels
if sys.argv[1] == "few":
    kernels.keep_few()
import torch
from nextword.blocks.packed import PackedMatrix, can_pack
names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
Info = type("Info", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in names]})
count = getattr(ctypes.CDLL(None), "mallinfo2", None)  # glibc
if count is None or not can_pack():
    sys.exit(77)
count.restype = Info
torch.set_num_threads(2)  # one thread may multiply without oneDNN
product = PackedMatrix(torch.ones(256, 64), None)
found = []
for rows in range(2, 322):
    product(torch.ones(rows, 64))
    found.append(count().uordblks + count().hblkhd)
print(found[-1] - found[100])
"""


@pytest.mark.slow
def test_memory_of_many_shapes_is_bounded():
    clean = {name: value for name, value in os.environ.items() if name not in kernels._CAPACITIES}

    def growth(kept):
        command = [sys.executable, "-c", _COUNT, kept]
        done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
        if done.returncode == 77:
            pytest.skip("this machine has no packed products, or does not count its memory")
        return int(done.stdout)

    assert growth("few") < 0.2 * growth("all")
