"""What a thread writes: its offsets are given at once, and nobody sees it before it is written."""

import errno
import struct

import pytest

from config.topic import TopicConfig
from protocol.records.control import build_end_transaction_marker
from storage.errors import (
    DirectoryBusyError,
    DiskError,
    LogDirectoryFullError,
    LogDirectoryOfflineError,
    OffsetOutOfRangeError,
)
from storage.log.directory_pace import COPY_MAX_MS, LARGE_BATCH_BYTES, NEVER, DirectoryPace
from storage.log.log import Log
from storage.log.write_ticket import AppendTicket, BackTicket, RetireTicket, RollTicket, WarmTicket
from storage.producers.snapshot import decode_snapshot
from storage.types.append_origin import AppendOrigin
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem
from tests.unit.storage.log.log_model import (
    DIRECTORY,
    NOW_MS,
    Opened,
    make_batch,
    open_log,
    read_records,
    small_segments,
)


class World:
    def __init__(self, config: TopicConfig | None = None, queued_bytes_max: int = 1 << 20) -> None:
        self.filesystem = FakeFilesystem()
        self.filesystem.mkdir("/data")
        self.filesystem.sync_directory("/")
        self.config = config or small_segments(1000)
        clock = ManualClock()
        self.pace = DirectoryPace(
            clock.monotonic_ms, clock.monotonic_s, queued_bytes_max=queued_bytes_max
        )
        self.log = open_log(self.filesystem, self.config)
        self.log.disk_work.leave_to(self.pace)

    def append(self, *values: bytes, leader_epoch: int = 0, **options: int) -> int:
        info = self.log.writer.append_as_leader(
            make_batch(*values, **options),  # type: ignore[arg-type]  # numbers only
            leader_epoch=leader_epoch,
            now_ms=NOW_MS,
        )
        return info.first_offset

    def write_one(self) -> object:
        """Let the thread do the next thing; what it was."""
        ticket = self.log.disk_work.begin()
        assert ticket is not None
        ticket.run()
        self.log.disk_work.finish(ticket)
        return ticket

    def values(self) -> list[bytes | None]:
        return [record.value for record in read_records(self.log)]

    def disk_calls(self) -> int:
        return self.filesystem.changes + self.filesystem.opens + self.filesystem.reads


@pytest.fixture
def world() -> World:
    return World()


def test_offsets_are_given_at_once_and_the_log_ends_where_it_is_written(world: World) -> None:
    assert world.append(b"a", b"b") == 0
    assert world.append(b"c") == 2
    log = world.log
    assert (log.log_end_offset, log.next_offset) == (0, 3)
    log.update_high_watermark(3)
    assert log.high_watermark == 0
    assert log.flusher.begin_flush() is None
    assert world.values() == []
    ticket = world.write_one()
    assert isinstance(ticket, AppendTicket)
    assert (log.log_end_offset, log.next_offset, log.write_queue) == (3, 3, None)
    assert world.values() == [b"a", b"b", b"c"]


def test_appending_makes_no_call_to_the_disk(world: World) -> None:
    """Not even where a segment is to be rolled, or an epoch begins, or an index is long."""
    world.append(b"first", leader_epoch=1)
    while world.log.write_queue is not None:
        world.write_one()
    before = world.disk_calls()
    for at in range(30):
        world.append(b"x" * 90, leader_epoch=2 + at // 20)
        world.log.update_high_watermark(world.log.next_offset)
    assert world.disk_calls() == before
    rolls = 0
    while world.log.write_queue is not None:
        ticket = world.log.disk_work.begin()
        assert ticket is not None
        ticket.run()
        before = world.disk_calls()
        world.log.disk_work.finish(ticket)
        assert world.disk_calls() == before
        rolls += isinstance(ticket, RollTicket)
    assert rolls == len(world.log.segment_facts()) - 1 > 2
    assert len(world.values()) == 31


def test_what_comes_while_others_are_queued_is_queued_behind_them(world: World) -> None:
    """However quick the directory is by then."""
    world.append(b"a")
    ticket = world.log.disk_work.begin()
    world.pace.inline_bytes_max = NEVER
    assert world.append(b"b") == 1
    assert world.log.disk_work.begin() is None
    assert ticket is not None
    ticket.run()
    world.log.disk_work.finish(ticket)
    assert (world.log.log_end_offset, world.log.next_offset) == (1, 2)
    world.write_one()
    assert world.append(b"c") == 2
    assert world.log.log_end_offset == 3
    assert world.values() == [b"a", b"b", b"c"]


def test_large_batches_alone_are_left_to_the_thread(world: World) -> None:
    world.pace.inline_bytes_max = 300
    world.append(b"small", leader_epoch=0)
    # The first of an epoch has its checkpoint written before it, with a sync.
    world.write_one()
    world.append(b"small")
    assert world.log.write_queue is None
    world.append(b"x" * 400)
    assert world.log.write_queue is not None


def test_large_batches_that_were_fetched_are_written_where_they_are(world: World) -> None:
    """A follower receives nothing while they wait. A copy that takes long is left to the thread."""
    world.append(b"first")
    world.write_one()
    log, pace = world.log, world.pace
    pace.inline_bytes_max = 300

    def fetch() -> None:
        offset = log.next_offset
        batch = make_batch(b"x" * 400)
        # What a leader changes; the sum does not cover it.
        struct.pack_into(">q", batch, 0, offset)
        struct.pack_into(">i", batch, 12, 0)
        log.follower.append(batch, fetch_offset=offset, leader_epoch=0)

    fetch()
    assert log.write_queue is None
    assert log.log_end_offset == 2
    pace.wrote_inline(COPY_MAX_MS + 1, LARGE_BATCH_BYTES + 1)
    fetch()
    assert log.log_end_offset == 2
    while log.write_queue is not None:
        world.write_one()
    assert log.log_end_offset == 3


def test_an_epoch_is_on_disk_before_its_first_batch(world: World) -> None:
    world.append(b"a", leader_epoch=3)
    assert not world.filesystem.exists(world.log.leader_epochs.path)
    world.filesystem.fail("write", path=".log")
    ticket = world.log.disk_work.begin()
    assert ticket is not None
    with pytest.raises(DiskError):
        ticket.run()
    assert b"3 0" in world.filesystem.after_crash(KEEP_ALL).peek(world.log.leader_epochs.path)
    assert world.log.reader.end_offset_for_epoch(3) == (3, 0)


def test_a_segment_nobody_has_written_to_since_the_start_is_read_first() -> None:
    """By the thread: its indexes, its first batch and its last."""
    world = World()
    world.pace.inline_bytes_max = NEVER
    for _ in range(4):
        world.append(b"x" * 60)
    while world.log.write_queue is not None:
        world.write_one()
    world.log.close()
    world.log = open_log(world.filesystem, world.config, opened=Opened(4, 0, clean_shutdown=True))
    world.log.disk_work.leave_to(world.pace)
    before = world.disk_calls()
    assert world.append(b"y") == 4
    assert world.disk_calls() == before
    assert isinstance(world.write_one(), WarmTicket)
    assert isinstance(world.write_one(), AppendTicket)
    before = world.filesystem.opens
    assert world.append(b"z") == 5
    assert world.log.write_queue is None
    assert world.filesystem.opens == before
    assert len(world.values()) == 6


def test_a_snapshot_holds_the_producers_of_its_offset_and_not_of_later_ones(world: World) -> None:
    """They have gone on by the time a thread writes it down."""
    sequence = 0
    while len({write.segment for write in _queued(world.log)} - {None}) < 2:
        world.append(b"x" * 90, producer_id=7, producer_epoch=0, base_sequence=sequence)
        world.append(b"n", producer_id=100 + sequence, producer_epoch=0, base_sequence=0)
        sequence += 1
    while world.log.write_queue is not None:
        world.write_one()
    for segment in world.log.segment_facts()[1:]:
        path = world.log.producer_snapshot_path(segment.base_offset)
        entries = {e.producer_id: e for e in decode_snapshot(world.filesystem.peek(path), path)}
        # Offsets 0, 2, 4 ... are producer 7's, those between a new one's each.
        assert entries[7].last_sequence == (segment.base_offset - 1) // 2
        assert len(entries) == 1 + segment.base_offset // 2
        assert all(entry.last_data_offset < segment.base_offset for entry in entries.values())


def _queued(log: Log) -> list:  # type: ignore[type-arg]  # of QueuedWrite
    return list(log.write_queue.writes) if log.write_queue is not None else []


def test_an_aborted_transaction_is_in_the_index_once_its_marker_is_written(world: World) -> None:
    log = world.log
    info = log.writer.append_as_leader(
        make_batch(b"t", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True),
        leader_epoch=0,
        now_ms=NOW_MS,
    )
    marker = build_end_transaction_marker(
        producer_id=9, producer_epoch=0, commit=False, coordinator_epoch=0, timestamp_ms=NOW_MS
    )
    log.writer.append_as_leader(
        memoryview(marker), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    assert info.first_offset == 0
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 0
    world.write_one()
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 2
    assert log.reader.aborted_transactions(0, 2) == [(9, 0)]


def test_a_retry_of_what_is_queued_is_a_duplicate(world: World) -> None:
    batch = {"producer_id": 4, "producer_epoch": 0, "base_sequence": 0}
    assert world.append(b"a", **batch) == 0
    info = world.log.writer.append_as_leader(
        make_batch(b"a", **batch),  # type: ignore[arg-type]  # numbers only
        leader_epoch=0,
        now_ms=NOW_MS,
    )
    assert (info.duplicate, info.first_offset, world.log.next_offset) == (True, 0, 1)


def test_borrowed_memory_is_kept_until_it_is_written(world: World) -> None:
    """And copied where that cannot be."""
    kept: list[memoryview] = []

    class Memory:
        def keep(self, records: memoryview) -> object:
            kept.append(records)
            return kept.clear

    class Shared:
        def keep(self, _records: memoryview) -> None:
            return None

    memory, shared = Memory(), Shared()
    lent = make_batch(b"lent")
    world.log.writer.append_as_leader(lent, leader_epoch=0, now_ms=NOW_MS, memory=memory)  # type: ignore[arg-type]  # a plain double
    used_again = make_batch(b"copied")
    world.log.writer.append_as_leader(used_again, leader_epoch=0, now_ms=NOW_MS, memory=shared)
    used_again[:] = bytes(len(used_again))
    assert kept == [lent]
    assert world.pace.queued_bytes == len(lent) + len(used_again)
    world.write_one()
    assert kept == []
    assert world.pace.queued_bytes == 0
    assert world.values() == [b"lent", b"copied"]


def test_what_would_be_too_much_is_refused_and_changes_nothing() -> None:
    """The producer's next batch must not be taken for one out of order."""
    world = World(queued_bytes_max=300)
    options = {"producer_id": 4, "producer_epoch": 0}
    world.append(b"x" * 200, base_sequence=0, **options)
    with pytest.raises(DirectoryBusyError, match="wait to be written"):
        world.append(b"y" * 200, base_sequence=1, **options)
    assert world.log.next_offset == 1
    world.write_one()
    assert world.append(b"y" * 200, base_sequence=1, **options) == 1


def test_a_write_that_fails_takes_those_behind_it_with_it(world: World) -> None:
    """None of them counts; what is left of it in the file is cut off."""
    world.append(b"a")
    world.write_one()
    world.append(b"b")
    world.filesystem.tear_failed_writes = True
    world.filesystem.fail("write", errno.EIO, path=".log")
    ticket = world.log.disk_work.begin()
    world.append(b"c")
    assert ticket is not None
    with pytest.raises(DiskError) as error:
        ticket.run()
    world.log.disk_work.finish(ticket, error.value)
    log = world.log
    assert (log.log_end_offset, log.write_queue, world.pace.queued_bytes) == (1, None, 0)
    with pytest.raises(LogDirectoryOfflineError):
        world.append(b"d")
    again = open_log(world.filesystem.after_crash(KEEP_ALL), world.config)
    assert [record.value for record in read_records(again)] == [b"a"]


def test_a_write_that_finds_no_room_is_undone_and_the_log_goes_on(world: World) -> None:
    """What was given offsets is forgotten by its producer's state and by the leader epochs."""
    options = {"producer_id": 4, "producer_epoch": 0}
    world.append(b"a", base_sequence=0, **options)
    world.write_one()
    world.append(b"b", base_sequence=1, **options)
    world.append(b"c", leader_epoch=7, base_sequence=2, **options)
    world.filesystem.tear_failed_writes = True
    world.filesystem.fail("write", errno.ENOSPC, path=".log")
    ticket = world.log.disk_work.begin()
    assert ticket is not None
    with pytest.raises(DiskError) as error:
        ticket.run()
    log = world.log
    log.disk_work.finish(ticket, error.value)
    assert (log.failure, log.next_offset, world.pace.queued_bytes) == (None, 1, 0)
    with pytest.raises(LogDirectoryFullError):
        world.append(b"d")
    assert world.values() == [b"a"]
    assert isinstance(world.write_one(), BackTicket)
    assert log.reader.end_offset_for_epoch(7) == (-1, -1)
    assert world.append(b"b", base_sequence=1, **options) == 1
    while log.write_queue is not None:
        world.write_one()
    assert world.values() == [b"a", b"b"]


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO])
def test_producers_that_no_descriptor_was_left_for_are_read_again(world: World, code: int) -> None:
    """What says nothing of the disk leaves the log where it is: it takes no records until then."""
    options = {"producer_id": 4, "producer_epoch": 0}
    world.append(b"a", base_sequence=0, **options)
    world.write_one()
    world.append(b"b", base_sequence=1, **options)
    log = world.log
    for kind, path, failing in (("write", ".log", errno.ENOSPC), ("read", "", code)):
        world.filesystem.fail(kind, failing, path=path)
        ticket = log.disk_work.begin()
        assert ticket is not None
        with pytest.raises(DiskError) as error:
            ticket.run()
        world.filesystem.heal()
        log.disk_work.finish(ticket, error.value)
    if code == errno.EIO:
        assert log.failure is not None
        assert log.disk_work.begin() is None
        return
    assert log.failure is None
    with pytest.raises(LogDirectoryFullError):
        world.append(b"b", base_sequence=1, **options)
    assert isinstance(world.write_one(), BackTicket)
    assert world.append(b"b", base_sequence=1, **options) == 1
    world.write_one()
    assert world.values() == [b"a", b"b"]


@pytest.mark.parametrize("inline_bytes_max", [-1, NEVER])
def test_an_epoch_that_was_taken_back_is_not_on_disk_below_later_batches(
    world: World, inline_bytes_max: int
) -> None:
    """A follower goes on with batches of an earlier epoch, which the next leader has there.

    A thread writes the epochs, however small the batches are.
    """
    world.append(b"a", leader_epoch=1)
    world.write_one()
    world.append(b"lost", leader_epoch=2)
    world.filesystem.fail("write", errno.ENOSPC, path=".log")
    ticket = world.log.disk_work.begin()
    assert ticket is not None
    with pytest.raises(DiskError) as error:
        ticket.run()
    log = world.log
    log.disk_work.finish(ticket, error.value)
    world.filesystem.heal()
    world.write_one()
    batch = make_batch(b"b", b"c")
    batch[0:8] = (1).to_bytes(8, "big")
    batch[12:16] = (1).to_bytes(4, "big")
    world.pace.inline_bytes_max = inline_bytes_max
    before = world.disk_calls()
    log.follower.append(batch, fetch_offset=1, leader_epoch=3)
    assert world.disk_calls() == before
    while log.write_queue is not None:
        world.write_one()
    assert log.leader_epochs.entries() == [(1, 0)]
    again = open_log(world.filesystem.after_crash(KEEP_ALL), world.config)
    assert again.log_end_offset == 3
    assert again.leader_epochs.entries() == [(1, 0)]


def test_a_clean_close_writes_what_is_queued(world: World) -> None:
    for _ in range(20):
        world.append(b"x" * 90)
    world.log.close()
    again = open_log(
        world.filesystem.after_crash(), world.config, opened=Opened(20, 0, clean_shutdown=True)
    )
    assert len(read_records(again)) == 20
    assert len(again.segment_facts()) > 2


def test_a_roll_can_be_queued(world: World) -> None:
    """For retention, which may come at any time."""
    world.log.write_behind.queue_roll()
    assert world.log.write_queue is None
    world.append(b"a")
    world.log.write_behind.queue_roll()
    world.log.write_behind.queue_roll()
    world.append(b"b")
    while world.log.write_queue is not None:
        world.write_one()
    assert [s.base_offset for s in world.log.segment_facts()] == [0, 1]
    assert world.values() == [b"a", b"b"]
    assert world.filesystem.exists(f"{DIRECTORY}/00000000000000000001.snapshot")


def test_retention_does_not_roll_under_a_write() -> None:
    """Its batch would end up in the old segment, behind where the new one begins."""
    world = World(small_segments(1000, retention_ms=1))
    world.append(b"a", timestamp_ms=1)
    while world.log.write_queue is not None:
        world.write_one()
    log = world.log
    log.update_high_watermark(1)
    world.append(b"b", timestamp_ms=1)
    ticket = log.disk_work.begin()
    assert isinstance(ticket, AppendTicket)
    assert log.retention.delete_old_segments() == 0
    with pytest.raises(AssertionError):
        log.writer.roll()
    ticket.run()
    log.disk_work.finish(ticket)
    assert [segment.base_offset for segment in log.segment_facts()] == [0]
    assert world.values() == [b"a", b"b"]


@pytest.mark.parametrize("full", [True, False])
def test_the_first_write_after_a_start_begins_a_segment_if_the_last_one_is_full(
    full: bool,
) -> None:
    """Which is known when its index has been read, after offsets were given."""
    one_batch_a_segment = {"segment_index_bytes": 12} if full else {}
    world = World(small_segments(1000, **one_batch_a_segment))
    world.append(b"before", producer_id=7, producer_epoch=0, base_sequence=0)
    while world.log.write_queue is not None:
        world.write_one()
    world.log.close()
    world.log = open_log(world.filesystem, world.config, opened=Opened(1, 0, clean_shutdown=True))
    world.log.disk_work.leave_to(world.pace)
    assert [world.append(value) for value in (b"a", b"b")] == [1, 2]
    tickets = []
    while world.log.write_queue is not None:
        tickets.append(type(world.write_one()))
    if full:
        assert tickets == [WarmTicket, RollTicket, AppendTicket]
        assert [segment.base_offset for segment in world.log.segment_facts()] == [0, 1]
        assert world.log.producer_state.snapshots.latest_offset == 1
    else:
        assert tickets == [WarmTicket, AppendTicket]
        assert len(world.log.segment_facts()) == 1
    assert world.values() == [b"before", b"a", b"b"]
    assert world.append(b"c") == 3


# -- retention -------------------------------------------------------------------------------


def old_world() -> World:
    """Several segments that retention takes, all written."""
    world = World(small_segments(150, retention_bytes=0))
    for at in range(6):
        world.append(b"%d" % at * 40)
    while world.log.write_queue is not None:
        world.write_one()
    world.log.update_high_watermark(world.log.log_end_offset)
    world.log.flusher.flush()
    return world


def names(world: World) -> set[str]:
    return {entry.name for entry in world.filesystem.list_directory(DIRECTORY)}


def test_retention_leaves_the_disk_to_the_thread() -> None:
    """The segments leave the log at once; their files, snapshots too, get names and go later."""
    world = old_world()
    log = world.log
    leaving = [segment.base_offset for segment in log.segment_facts()[:-1]]
    before = world.disk_calls(), names(world)
    assert log.retention.delete_old_segments() == len(leaving) > 2
    assert (world.disk_calls(), names(world)) == before
    assert log.log_start_offset == log.segment_facts()[0].base_offset > leaving[-1]
    with pytest.raises(OffsetOutOfRangeError):
        log.reader.read(0, max_bytes=9, end_offset=6, min_one_batch=True)
    assert isinstance(world.write_one(), RetireTicket)
    found = names(world)
    for base_offset in leaving:
        assert f"{base_offset:020d}.log.deleted" in found
        assert not {f"{base_offset:020d}{kind}" for kind in (".log", ".index", ".snapshot")} & found
    assert log.deletion.remove_deleted_files(now=True) == len(leaving)
    assert not any(name.endswith(".deleted") for name in names(world))


def test_what_is_written_meanwhile_is_written_behind_it() -> None:
    """One ticket at a time."""
    world = old_world()
    world.log.retention.delete_old_segments()
    world.append(b"new")
    retire = world.log.disk_work.begin()
    assert isinstance(retire, RetireTicket)
    retire.run()
    world.log.disk_work.finish(retire)
    while world.log.write_queue is not None:
        world.write_one()
    assert world.values()[-1] == b"new"


def test_a_full_disk_lets_retention_try_again() -> None:
    """Nobody's records are lost by that, and the thread is not kept busy with it."""
    world = old_world()
    log = world.log
    count = log.retention.delete_old_segments()
    ticket = log.disk_work.begin()
    assert ticket is not None
    world.filesystem.fail("rename", errno.ENOSPC, skip=2)
    ticket.run()
    world.filesystem.heal()
    log.disk_work.finish(ticket)
    assert (log.failure, log.refusal, log.deletion.is_due) == (None, None, False)
    assert isinstance(world.write_one(), RollTicket)
    assert log.disk_work.begin() is None
    count += log.retention.delete_old_segments()
    assert isinstance(world.write_one(), RetireTicket)
    assert log.deletion.remove_deleted_files(now=True) == count


@pytest.mark.parametrize("error", [DiskError("no", DIRECTORY, errno.EIO), ValueError("a bug")])
def test_a_disk_that_refuses_a_name_has_failed(error: Exception) -> None:
    world = old_world()
    world.log.retention.delete_old_segments()
    world.append(b"lost")
    ticket = world.log.disk_work.begin()
    assert ticket is not None
    world.log.disk_work.finish(ticket, error)
    assert world.log.failure is not None
    assert world.log.disk_work.begin() is None


@pytest.mark.parametrize("renamed", range(0, 12, 3))
def test_a_start_finds_a_log_whatever_names_there_are(renamed: int) -> None:
    """What has no new name yet is there again, without a gap, and goes at the next pass."""
    world = old_world()
    world.log.retention.delete_old_segments()
    ticket = world.log.disk_work.begin()
    assert ticket is not None
    world.filesystem.fail("rename", errno.ENOSPC, skip=renamed)
    ticket.run()
    world.filesystem.crash(KEEP_ALL)
    world.filesystem.heal()
    world.log = open_log(world.filesystem, world.config, opened=Opened(0))
    world.log.update_high_watermark(6)
    starts = [segment.base_offset for segment in world.log.segment_facts()]
    assert [record.offset for record in read_records(world.log)] == list(range(starts[0], 6))
    world.log.retention.delete_old_segments()
    assert len(world.log.segment_facts()) == 1


def test_a_log_that_begins_anew_reuses_no_file_that_leaves() -> None:
    """The next segment may have the offset of one that waits for its name."""
    world = old_world()
    world.log.retention.delete_old_segments()
    world.log.truncation.truncate_fully_and_start_at(0)
    assert world.log.disk_work.begin() is None
    assert world.append(b"first") == 0
    while world.log.write_queue is not None:
        world.write_one()
    assert world.values() == [b"first"]
    assert not any(name.endswith(".deleted") for name in names(world))


def test_a_folder_with_another_name_takes_what_leaves_along() -> None:
    """The topic is deleted before the thread has come to it."""
    world = old_world()
    world.log.retention.delete_old_segments()
    world.log.rename_directory("/data/gone")
    world.write_one()
    found = {entry.name for entry in world.filesystem.list_directory("/data/gone")}
    assert any(name.endswith(".log.deleted") for name in found)
