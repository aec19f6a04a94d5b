"""How much may be written before the kernel makes writers wait."""

import mmap
import os
from pathlib import Path

import pytest

from storage.environment.dirty_pages import device_of, dirty_room

PAGE = mmap.PAGESIZE
MACHINE = (
    "nr_free_pages 7\nnr_dirty 100\nnr_writeback 20\n"
    "nr_dirty_threshold 2000\nnr_dirty_background_threshold 1000\n"
)


def room_of(files: dict[str, str]) -> int | None:
    def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    return dirty_room(os.makedev(8, 16), read)


def test_writers_wait_from_the_middle_of_the_thresholds_on() -> None:
    assert room_of({"/proc/vmstat": MACHINE}) == (1500 - 120) * PAGE


def test_there_is_no_less_room_than_none() -> None:
    assert room_of({"/proc/vmstat": MACHINE.replace("nr_dirty 100", "nr_dirty 5000")}) == 0


@pytest.mark.parametrize("text", ["", "nr_dirty 1\n", "nonsense\n", "nr_dirty x\n"])
def test_a_system_that_does_not_tell_is_not_guessed(text: str) -> None:
    assert room_of({"/proc/vmstat": text}) is None
    assert room_of({}) is None


def test_a_container_may_have_less() -> None:
    files = {
        "/proc/vmstat": MACHINE,
        "/sys/fs/cgroup/memory.max": "10000000\n",
        "/sys/fs/cgroup/memory.stat": "anon 5\nfile_dirty 300000\nfile_writeback 200000\n",
    }
    assert room_of(files) == 500_000
    assert room_of({**files, "/sys/fs/cgroup/memory.max": "max\n"}) == (1500 - 120) * PAGE


def test_a_device_with_a_limit_of_its_own_is_not_guessed() -> None:
    strict = "/sys/class/bdi/8:16/strict_limit"
    assert room_of({"/proc/vmstat": MACHINE, strict: "1\n"}) is None
    assert room_of({"/proc/vmstat": MACHINE, strict: "0\n"}) == (1500 - 120) * PAGE


def test_this_machine_tells_or_does_not(tmp_path: Path) -> None:
    assert device_of(str(tmp_path)) == tmp_path.stat().st_dev
    assert device_of(str(tmp_path / "missing")) == 0
    room = dirty_room(device_of(str(tmp_path)))
    assert room is None or room >= 0
