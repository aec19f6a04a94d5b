"""Holes in the page cache are found wherever they are."""

import os
from pathlib import Path

import pytest

from broker.network import page_cache
from broker.network.page_cache import PAGE, has_holes

SIZE = 64 * PAGE


@pytest.fixture
def descriptor(tmp_path: Path) -> int:
    """A file on the disk of which nothing is in memory, if the system does as it is told."""
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, bytes(SIZE), 0)
    assert not has_holes(fd, 0, SIZE)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, SIZE, os.POSIX_FADV_DONTNEED)
    if not has_holes(fd, 0, SIZE):
        pytest.skip("this kernel has no cachestat, or this file system keeps its pages")
    return fd


def test_pages_in_between_count(descriptor: int) -> None:
    """The first and the last, which a look-up reads, prove nothing."""
    os.posix_fadvise(descriptor, 0, SIZE, os.POSIX_FADV_RANDOM)
    os.pread(descriptor, 1, 0)
    os.pread(descriptor, 1, SIZE - 1)
    assert has_holes(descriptor, 0, SIZE)
    assert not has_holes(descriptor, 10, 100)
    assert not has_holes(descriptor, SIZE - PAGE, PAGE)
    os.pread(descriptor, SIZE, 0)
    assert not has_holes(descriptor, 0, SIZE)
    assert not has_holes(descriptor, PAGE - 1, 2)


def test_where_it_cannot_be_told_nothing_is_missing(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older kernel refuses the call: it is not asked again."""
    calls = []

    def refused(*arguments: object) -> int:
        calls.append(arguments)
        return -1

    monkeypatch.setattr(page_cache, "_syscall", refused)
    assert not has_holes(descriptor, 0, SIZE)
    assert not has_holes(descriptor, 0, SIZE)
    assert len(calls) == 1
