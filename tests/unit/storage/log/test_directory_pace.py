"""Who writes to a directory: quick ones whoever appends, slow ones a thread, with hysteresis."""

import pytest

from storage.log.directory_pace import (
    BACKLOG_MIN_BYTES,
    CALM_MAX_MS,
    CALM_MIN_MS,
    CONGESTED_BYTES,
    COPIES_BEHIND_MS,
    COPY_MAX_MS,
    FETCHED_BYTES_MAX,
    INLINE,
    LARGE_BATCH_BYTES,
    NEVER,
    PROOF_WRITES,
    WATCHED_BYTES,
    WATCHED_EVERY_MAX,
    DirectoryPace,
)
from tests.fakes.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def pace(clock: ManualClock) -> DirectoryPace:
    return DirectoryPace(clock.monotonic_ms, clock.monotonic_s)


def prove(pace: DirectoryPace) -> None:
    for _ in range(PROOF_WRITES):
        pace.wrote_behind(1, 1000)


def test_a_directory_proves_itself_before_anybody_waits_for_it(pace: DirectoryPace) -> None:
    """The first write of all may be the one that takes a second."""
    assert not pace.is_quick
    for _ in range(PROOF_WRITES - 1):
        pace.wrote_behind(1, 1000)
    assert not pace.is_quick
    pace.wrote_behind(1, 1000)
    assert pace.is_quick
    assert pace.inline_bytes_max == LARGE_BATCH_BYTES


def test_fetched_batches_are_written_here_until_a_copy_takes_long(
    pace: DirectoryPace, clock: ManualClock
) -> None:
    assert pace.fetched_inline_bytes_max == -1
    prove(pace)
    assert pace.fetched_inline_bytes_max == FETCHED_BYTES_MAX
    pace.wrote_inline(COPY_MAX_MS, 1 << 20)
    pace.wrote_inline(2 * COPY_MAX_MS, LARGE_BATCH_BYTES)
    assert pace.fetched_inline_bytes_max == FETCHED_BYTES_MAX
    pace.wrote_inline(COPY_MAX_MS + 0.1, 1 << 20)
    assert pace.fetched_inline_bytes_max == pace.inline_bytes_max == LARGE_BATCH_BYTES
    clock.advance(COPIES_BEHIND_MS - 1)
    assert pace.fetched_inline_bytes_max == LARGE_BATCH_BYTES
    clock.advance(1)
    assert pace.fetched_inline_bytes_max == FETCHED_BYTES_MAX
    assert not pace.late_writes


def test_a_copy_that_waited_for_a_processor_did_not_take_long(clock: ManualClock) -> None:
    waited = [0.0]
    pace = DirectoryPace(clock.monotonic_ms, clock.monotonic_s, cpu_wait_ms=lambda: waited[0])
    prove(pace)
    waited[0] = 3.0
    pace.wrote_inline(4.0, 1 << 20)
    assert pace.fetched_inline_bytes_max == FETCHED_BYTES_MAX


def test_without_a_thread_fetched_batches_are_written_here(clock: ManualClock) -> None:
    pace = DirectoryPace(clock.monotonic_ms, clock.monotonic_s, has_writer=False)
    assert pace.fetched_inline_bytes_max == NEVER


def test_a_late_write_begins_the_proof_anew(pace: DirectoryPace) -> None:
    for _ in range(PROOF_WRITES - 1):
        pace.wrote_behind(1, 1000)
    pace.wrote_behind(6, 1000)
    pace.wrote_behind(1, 1000)
    assert not pace.is_quick


def test_many_bytes_may_take_their_time(pace: DirectoryPace) -> None:
    """16 ms for a mebibyte are 100 MB/s and 5 ms."""
    for _ in range(PROOF_WRITES):
        pace.wrote_behind(15, 1 << 20)
    assert pace.is_quick


@pytest.mark.parametrize("stalls", [(30,), (12, 12, 12)])
def test_who_is_held_up_leaves_writing_to_the_thread(
    pace: DirectoryPace, stalls: tuple[int, ...]
) -> None:
    """At once by one long wait, or by some within a second."""
    prove(pace)
    for stall in stalls:
        assert pace.is_quick
        pace.wrote_inline(stall, 100)
    assert not pace.is_quick
    assert pace.relapses == 1


def test_a_late_write_now_and_then_changes_nothing(pace: DirectoryPace, clock: ManualClock) -> None:
    prove(pace)
    for _ in range(10):
        pace.wrote_inline(15, 100)
        clock.advance(1001)
    assert pace.is_quick
    assert pace.late_writes == 10


def test_it_comes_back_after_a_calm_second(pace: DirectoryPace, clock: ManualClock) -> None:
    prove(pace)
    pace.wrote_inline(100, 100)
    prove(pace)
    assert not pace.is_quick
    clock.advance(CALM_MIN_MS)
    pace.wrote_behind(1, 1000)
    assert pace.is_quick


def test_relapses_make_the_calm_longer(pace: DirectoryPace, clock: ManualClock) -> None:
    """Or a directory that is slow again as soon as it is trusted would hold the loop each time."""
    prove(pace)
    waits = []
    for _ in range(9):
        pace.wrote_inline(100, 100)
        waited = 0
        while not pace.is_quick:
            clock.advance(500)
            waited += 500
            prove(pace)
        waits.append(waited)
    assert waits == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000]
    clock.advance(2 * CALM_MAX_MS)
    pace.wrote_inline(100, 100)
    clock.advance(CALM_MIN_MS)
    prove(pace)
    assert pace.is_quick


def test_what_waits_is_bounded(clock: ManualClock) -> None:
    """One batch always may; what is above the bound is told to come again."""
    pace = DirectoryPace(clock.monotonic_ms, clock.monotonic_s, queued_bytes_max=1000)
    assert pace.has_room(5000)
    pace.queue(600)
    assert pace.has_room(400)
    assert not pace.has_room(401)
    assert (pace.refused, pace.queued_bytes_peak) == (1, 600)
    pace.queue(-600)
    assert pace.has_room(401)
    pace.queue(CONGESTED_BYTES)
    assert pace.is_congested


def test_waiting_for_a_processor_is_not_the_disks_fault(clock: ManualClock) -> None:
    """On a machine with much to do every call takes long now and then."""
    waited = [0.0]
    pace = DirectoryPace(clock.monotonic_ms, clock.monotonic_s, cpu_wait_ms=lambda: waited[0])
    prove(pace)
    waited[0] = 96.0
    pace.wrote_inline(100, 100)
    assert pace.is_quick
    pace.wrote_inline(100, 100)
    assert not pace.is_quick


def watched_pace(clock: ManualClock) -> tuple[DirectoryPace, list[object]]:
    pace = DirectoryPace(clock.monotonic_ms, clock.monotonic_s)
    prove(pace)
    asked: list[object] = []
    pace.watch_from(asked.append)
    return pace, asked


def test_a_disk_that_does_not_take_what_is_written_is_slow_before_it_shows(
    clock: ManualClock,
) -> None:
    """The write that uses the last of the dirty pages up would take seconds."""
    pace, _ = watched_pace(clock)
    for _ in range(BACKLOG_MIN_BYTES // WATCHED_BYTES):
        pace.written += WATCHED_BYTES
        assert pace.written >= pace.watch_at
        pace.watching()
        assert pace.is_quick
    pace.written += WATCHED_BYTES
    pace.watching()
    assert not pace.is_quick
    assert pace.late_writes == 0


def test_a_disk_may_be_behind_by_what_it_takes_in_some_seconds(clock: ManualClock) -> None:
    """At 100 MB/s by 800 MB."""
    pace, _ = watched_pace(clock)
    pace.written = WATCHED_BYTES
    pace.watched(pace.written, WATCHED_BYTES, WATCHED_BYTES / 100_000)
    pace.written += 700_000_000
    pace.watching()
    assert pace.is_quick
    pace.written += 200_000_000
    pace.watching()
    assert not pace.is_quick
    clock.advance(10_000)
    prove(pace)
    assert not pace.is_quick
    pace.watched(pace.written, 1_000_000, 10)
    assert pace.watch_at == pace.written + WATCHED_EVERY_MAX
    clock.advance(10_000)
    prove(pace)
    assert pace.is_quick


def test_where_the_kernel_has_room_for_much_a_busy_disk_is_no_slow_one(clock: ManualClock) -> None:
    """A disk that is written to at its full speed takes a watched piece late."""
    pace = DirectoryPace(clock.monotonic_ms, clock.monotonic_s)
    prove(pace)
    asked: list[object] = []
    pace.watch_from(asked.append, 800_000_000)
    pace.written += 190_000_000
    pace.watching()
    assert pace.is_quick
    pace.watched(pace.written, WATCHED_BYTES, 2_000, 800_000_000)
    pace.written += 190_000_000
    pace.watching()
    assert pace.is_quick
    pace.watched(pace.written, WATCHED_BYTES, 2_000, 40_000_000)
    pace.written += BACKLOG_MIN_BYTES + 1
    pace.watching()
    assert not pace.is_quick


def test_without_a_thread_nothing_is_left_to_it() -> None:
    INLINE.wrote_inline(10_000, 1)
    assert INLINE.is_quick
    assert not INLINE.has_writer
