"""A segment: index entries by Kafka's rule, and indexes that are checked when they are used."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.segment.batch_append import BatchAppend
from storage.segment.indexed_segment import HINTS_MAX
from storage.segment.segment import Segment
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import NOW_MS, make_batch


def _segment(filesystem: FakeFilesystem, base_offset: int = 0, interval: int = 100) -> Segment:
    filesystem.mkdir("/d")
    return Segment.create(
        "/d",
        base_offset,
        filesystem,
        index_interval_bytes=interval,
        index_max_bytes=1 << 16,
        created_ms=NOW_MS,
    )


def _batch(offset: int, *values: bytes, timestamp_ms: int = NOW_MS) -> bytes:
    batch = make_batch(*values, timestamp_ms=timestamp_ms)
    batch[0:8] = offset.to_bytes(8, "big")
    return bytes(batch)


def _fill(segment: Segment, count: int = 12, size: int = 10) -> list[int]:
    """One record a batch; returns where each begins."""
    positions = []
    for offset in range(count):
        batch = _batch(offset, b"x" * size, timestamp_ms=NOW_MS + offset * 10)
        positions.append(segment.size)
        segment.append(batch, len(batch), offset, NOW_MS + offset * 10)
    return positions


def test_entries_follow_kafkas_rule() -> None:
    """An entry for the batch that starts after more than the interval; none at position 0."""
    segment = _segment(FakeFilesystem())
    positions = _fill(segment, size=10)
    size = positions[1]
    assert size * 1 <= 100 < size * 2
    expected = [(offset, positions[offset]) for offset in range(2, 12, 2)]
    assert segment.offset_index.entries() == expected
    assert segment.time_index.entries() == [(NOW_MS + at * 10, at) for at in range(2, 12, 2)]
    segment.seal()
    assert segment.time_index.entries()[-1] == (NOW_MS + 110, 11)


def test_appending_together_indexes_each_batch() -> None:
    """As if they had come one by one."""
    one_by_one, together = _segment(FakeFilesystem()), _segment(FakeFilesystem())
    _fill(one_by_one)
    batches = [_batch(at, b"x" * 10, timestamp_ms=NOW_MS + at * 10) for at in range(12)]
    together.append_batches(
        b"".join(batches),
        [BatchAppend(len(batch), at, NOW_MS + at * 10) for at, batch in enumerate(batches)],
    )
    assert together.offset_index.entries() == one_by_one.offset_index.entries()
    assert together.time_index.entries() == one_by_one.time_index.entries()
    assert together.max_timestamp == one_by_one.max_timestamp


def test_a_rebuilt_index_is_the_same() -> None:
    """By the same rule, from the headers."""
    segment = _segment(FakeFilesystem())
    _fill(segment)
    segment.seal()
    before = segment.offset_index.entries(), segment.time_index.entries()
    segment.rebuild_indexes()
    assert (segment.offset_index.entries(), segment.time_index.entries()) == before


def test_every_offset_is_found() -> None:
    """With indexes in memory, on disk, and wrong in every way that parses."""
    filesystem = FakeFilesystem()
    segment = _segment(filesystem)
    positions = _fill(segment)
    segment.seal()
    path = segment.offset_index.path
    good = filesystem.peek(path)
    shifted = b"".join(
        good[at : at + 4] + (int.from_bytes(good[at + 4 : at + 8], "big") + 9).to_bytes(4, "big")
        for at in range(0, len(good), 8)
    )
    early = b"".join(
        (1 + at // 8).to_bytes(4, "big") + good[at + 4 : at + 8] for at in range(0, len(good), 8)
    )
    for data in (good, b"", shifted, early, good[:8], good[::-1]):
        filesystem.poke(path, data)
        reopened = Segment(
            "/d", 0, filesystem, index_interval_bytes=100, index_max_bytes=1 << 16,
            size=segment.size,
        )  # fmt: skip
        assert [reopened.position_of(offset) for offset in range(12)] == positions
        assert reopened.position_of(12) == segment.size
        assert reopened.next_offset() == 12
        assert reopened.max_timestamp == NOW_MS + 110


def test_times_are_found_exactly() -> None:
    """The first record that is late enough, from an offset on, within a batch too."""
    segment = _segment(FakeFilesystem())
    for at in range(10):
        batch = _batch(at * 2, b"a", b"b", timestamp_ms=NOW_MS + (at * 37) % 100)
        segment.append(batch, len(batch), at * 2 + 1, NOW_MS + (at * 37) % 100)
    times = [(at * 37) % 100 for at in range(10) for _ in range(2)]
    for sealed in (False, True):
        if sealed:
            segment.seal()
        for start in range(20):
            for wanted in range(-1, 102, 5):
                expected = next((o for o in range(start, 20) if times[o] >= wanted), None)
                found = segment.find_timestamp(
                    NOW_MS + wanted, start_offset=start, end_position=segment.size, max_size=999
                )
                assert (found.offset if found else None) == expected, (start, wanted)


def test_truncation_cuts_file_and_indexes() -> None:
    """The batch that holds the offset goes whole."""
    segment = _segment(FakeFilesystem())
    for at in range(6):
        batch = _batch(at * 3, b"a", b"b", b"c", timestamp_ms=NOW_MS + at)
        segment.append(batch, len(batch), at * 3 + 2, NOW_MS + at)
    size = segment.size // 6
    assert segment.truncate_to(10) == 9
    assert segment.size == size * 3
    assert segment.max_timestamp == NOW_MS + 2
    assert all(position < segment.size for _, position in segment.offset_index.entries())
    assert segment.next_offset() == 9
    assert segment.truncate_to(0) == 0
    assert (segment.size, segment.max_timestamp, segment.next_offset()) == (0, -1, 0)


def test_hints_are_bounded() -> None:
    """Those of the last readers are there, those of readers long gone are not."""
    segment = _segment(FakeFilesystem())
    _fill(segment, count=3)
    for offset in range(1000, 1000 + HINTS_MAX * 5):
        segment.remember(offset, offset - 1000)
    assert segment._hints is not None
    assert segment._older_hints is not None
    assert len(segment._hints) + len(segment._older_hints) <= 2 * HINTS_MAX
    last = 1000 + HINTS_MAX * 5 - 1
    for offset in range(last, last - HINTS_MAX, -1):
        assert segment.position_of(offset) == offset - 1000
    assert segment.position_of(1000) == segment.size
    segment.close()
    assert segment.position_of(last) == segment.size


class Interrupting(int):
    """An offset at whose first look-up somebody else comes in between."""

    def __new__(cls, value: int, meanwhile: Callable[[], None]) -> "Interrupting":
        made = super().__new__(cls, value)
        made.meanwhile = [meanwhile]
        return made

    meanwhile: list[Callable[[], None]]

    def __hash__(self) -> int:
        if self.armed and self.meanwhile:
            self.meanwhile.pop()()
        return int.__hash__(self)

    armed = False


def test_readers_in_threads_do_not_disturb_each_other() -> None:
    """One comes in while another makes room: as a thread may, between any two steps."""
    segment = _segment(FakeFilesystem())
    _fill(segment, count=3)

    def others() -> None:
        for offset in range(5000, 5000 + HINTS_MAX):
            segment.remember(offset, 1)

    oldest = Interrupting(1000, others)
    segment.remember(oldest, 0)
    for offset in range(1001, 1000 + HINTS_MAX):
        segment.remember(offset, 0)
    oldest.armed = True
    segment.remember(Interrupting(2000, others), 7)
    assert segment.position_of(2000) == 7


def test_threads_and_the_loop_remember_at_once() -> None:
    """With switches as often as the interpreter allows them."""
    segment = _segment(FakeFilesystem())
    _fill(segment, count=3)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:

        def remember(first: int) -> None:
            for offset in range(first, first + 30_000):
                segment.remember(offset, 3)
                assert segment.position_of(offset) in (3, segment.size)

        with ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(remember, at * 1_000_000 + 1000) for at in range(3)]:
                done.result()
    finally:
        sys.setswitchinterval(interval)
    assert len(segment._hints or ()) + len(segment._older_hints or ()) <= 2 * HINTS_MAX + 6


def test_files_move_together() -> None:
    """All of a segment's files change their stage, and vanish when it is deleted."""
    filesystem = FakeFilesystem()
    segment = _segment(filesystem, 42)
    batch = _batch(42, b"x")
    segment.append(batch, len(batch), 42, NOW_MS)
    segment.seal()
    segment.rename_stage(".deleted")
    names = {entry.name for entry in filesystem.list_directory("/d")}
    assert names == {f"{42:020d}{kind}.deleted" for kind in (".log", ".index", ".timeindex")}
    assert [header.base_offset for _, header in segment.scan()] == [42]
    segment.delete_files()
    assert filesystem.list_directory("/d") == []


@pytest.mark.parametrize("size", [0, 1])
def test_an_old_file_of_the_same_name_is_emptied(size: int) -> None:
    """A crash may have left it."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.poke(f"/d/{0:020d}.log", b"x" * size)
    segment = _segment(filesystem)
    assert (segment.size, filesystem.file_size(segment.path)) == (0, 0)
