"""Holes in the page cache are found wherever they are, and filled."""

import os
from pathlib import Path

import pytest

from storage.environment import page_cache, quick_reads
from storage.environment.page_cache import PAGE, has_holes, is_cached, read_in

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


@pytest.fixture
def cached(tmp_path: Path) -> int:
    """A file whose pages are in memory."""
    fd = os.open(tmp_path / "cached", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, bytes(SIZE), 0)
    read_in(fd, 0, SIZE)
    return fd


def test_cached_pages_are_seen(cached: int) -> None:
    assert is_cached(cached, 0, SIZE)


def test_a_range_is_read_in(descriptor: int) -> None:
    assert not is_cached(descriptor, 0, SIZE)
    read_in(descriptor, 0, SIZE)
    assert is_cached(descriptor, 0, SIZE)


def test_a_range_beyond_the_file_ends_with_it(cached: int) -> None:
    """A file that was cut meanwhile is no endless loop."""
    read_in(cached, 0, 2 * SIZE)


def test_pages_missing_in_between_are_noticed(cached: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe looks at some; all are counted."""
    monkeypatch.setattr(page_cache, "has_holes", lambda *_: True)
    monkeypatch.setattr(page_cache, "_counted_left", 1)
    assert not is_cached(cached, 0, SIZE)


def test_pages_are_counted_while_ranges_are_cold(
    cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting costs a tenth of sending: not where everything is in memory anyway."""
    counted: list[object] = []
    monkeypatch.setattr(page_cache, "has_holes", lambda *asked: counted.append(asked))
    monkeypatch.setattr(page_cache, "_counted_left", 2)
    for _ in range(3):
        assert is_cached(cached, 0, SIZE)
    assert len(counted) == 2
    page_cache.count_pages()
    assert is_cached(cached, 0, SIZE)
    assert len(counted) == 3


def test_a_platform_without_nowait_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And counts every page as cached, so that it works all the same."""
    assert page_cache.describe_missing() == ()
    monkeypatch.setattr(quick_reads, "has_nowait", False)
    assert "RWF_NOWAIT" in page_cache.describe_missing()[0]
    assert is_cached(-1, 0, 100)
