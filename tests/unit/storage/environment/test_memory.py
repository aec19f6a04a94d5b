"""How much memory there is for this process, whoever says so."""

import resource

import pytest

from storage.environment.memory import address_space, memory_bytes, physical_memory

GIB = 1 << 30


def found(files: dict[str, str], *, limit: int | None = None) -> int:
    def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    return memory_bytes(read, lambda: 64 * GIB, lambda: limit)


def test_without_a_limit_it_is_the_machines() -> None:
    assert found({}) == 64 * GIB
    assert found({"/sys/fs/cgroup/memory.max": "max\n"}) == 64 * GIB
    assert found({"/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{1 << 62}\n"}) == 64 * GIB


@pytest.mark.parametrize(
    "files",
    [
        {"/sys/fs/cgroup/memory.max": f"{GIB}\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n"},
        {
            "/proc/self/cgroup": "0::/system.slice/varve.service\n",
            "/sys/fs/cgroup/system.slice/varve.service/memory.max": f"{GIB}\n",
            "/sys/fs/cgroup/system.slice/memory.max": "max\n",
        },
        {
            "/proc/self/cgroup": "1:name=systemd:/x\n0::/system.slice/varve.service\n",
            "/sys/fs/cgroup/system.slice/varve.service/memory.max": f"{3 * GIB}\n",
            "/sys/fs/cgroup/system.slice/memory.max": f"{GIB}\n",
        },
    ],
)
def test_a_containers_limit_counts_wherever_it_is_set(files: dict[str, str]) -> None:
    assert found(files) == GIB


def test_the_least_of_all_counts() -> None:
    files = {"/sys/fs/cgroup/memory.max": f"{2 * GIB}\n"}
    assert found(files, limit=GIB) == GIB
    assert found(files, limit=8 * GIB) == 2 * GIB


def test_what_makes_no_sense_is_no_limit() -> None:
    files = {"/proc/self/cgroup": "", "/sys/fs/cgroup/memory.max": "nonsense"}
    assert found(files) == 64 * GIB


def test_this_machine() -> None:
    assert 0 < memory_bytes() <= physical_memory()
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    assert address_space() == (None if soft == resource.RLIM_INFINITY else soft)
