"""What the machine has and what a container leaves of it, read from files as Linux writes them."""

import pytest

from nextword.system.machine import read_machine

CPUINFO = "processor\t: 0\nflags\t\t: fpu sse avx2 avx512f avx512_bf16\n\nprocessor\t: 1\nflags\t\t: fpu\n"
MEMINFO = "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    8000 kB\n"


def written(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_machine(root)


def test_memory_and_instructions_are_those_of_the_first_processor(tmp_path):
    found = written(tmp_path, {"proc/cpuinfo": CPUINFO, "proc/meminfo": MEMINFO})
    assert (found.memory, found.available, found.limit) == (16_384_000, 8_192_000, None)
    assert found.features == ("avx2", "avx512f", "avx512_bf16")
    assert found.quota is None
    assert found.usable == found.allowed >= 1


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "50000 100000\n"}, 0.5),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, None),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/box\n",
                "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "150000\n",
                "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000\n",
            },
            1.5,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
    ids=["group above", "no limit", "version 1", "version 1, no limit"],
)
def test_container_has_the_smallest_limit_on_the_way_up(files, quota, tmp_path):
    found = written(tmp_path, files)
    assert found.quota == quota
    if quota is not None:
        assert found.usable == 1 or found.usable <= round(quota)


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "1000000\n"}, 1_000_000),
        ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, None),
        (
            {
                "proc/self/cgroup": "9:memory:/a\n",
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n",
            },
            None,
        ),
    ],
    ids=["limit", "none", "version 1, none"],
)
def test_limit_of_memory(files, limit, tmp_path):
    assert written(tmp_path, files).limit == limit


def test_system_that_tells_nothing_is_no_error(tmp_path):
    found = read_machine(tmp_path)
    assert (found.memory, found.quota, found.features) == (None, None, ())
