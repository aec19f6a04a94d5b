"""A log moves to another directory; a crash at any step leaves one that is whole."""

import errno
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from uuid import UUID

import pytest

from protocol.records.batch import iterate_batches
from storage.checkpoints.checkpoint_files import CLEANER_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from storage.checkpoints.log_directory import Change, LogDirectory
from storage.errors import DiskError, LogDirectoryFullError
from storage.log.log import Log
from storage.manager.log_manager import LogManager
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL
from tests.effort import swept
from tests.fakes.filesystem import KEEP_ALL, Keep, PowerCut
from tests.unit.storage.log.log_model import NOW_MS, make_batch
from tests.unit.storage.manager.log_disk import A0, CONFIG, ID_A, ID_B, Disk, append

SMALL = CONFIG.with_values({"segment_bytes": 400, "file_delete_delay_ms": 0})
RECORDS = 40
LOG_START = 3


class Node:
    """Two directories, and what the metadata store says of the partition."""

    def __init__(self) -> None:
        self.disk = Disk("/one", "/two")
        self.place: UUID | None = None
        self.manager = self.start()

    def start(self) -> LogManager:
        manager = self.disk.manager()
        manager.assigned = self.assigned
        manager.startup.load(lambda _topic: SMALL)
        self.manager = manager
        self.place = manager.found_elsewhere.get(A0, self.place)
        return manager

    def assigned(self, topic_partition: TopicPartition) -> UUID | None:
        assert topic_partition == A0
        return self.place

    def directory(self, path: str) -> LogDirectory:
        return next(d for d in self.manager.directories if d.path == path)

    def create(self) -> Log:
        """A log in /one with several segments, all of it on disk, records deleted at its start."""
        self.place = self.directory("/one").id
        log = self.manager.creation.get_or_create(A0, ID_A, SMALL)
        append(log, RECORDS)
        log.delete_records(LOG_START)
        log.flusher.flush()
        self.manager.checkpoints.write()
        return log

    def move(self, log: Log, path: str) -> Log:
        """As the broker does it, in one thread."""
        manager, target = self.manager, self.directory(path)
        copy = manager.moves.begin_move(log, target)
        manager.moves.copy_segments(log, copy)
        append(log, 2)
        log.flusher.flush()
        manager.moves.copy_segments(log, copy)
        append(log, 1)
        manager.moves.before_take_out(log)
        manager.moves.take_out(log)
        manager.moves.finish_move(log, copy, target)
        self.place = target.id
        moved = manager.moves.swap(log, copy, target, SMALL)
        assert moved is not None
        return moved


def check(log: Log | None, at_least: int) -> None:
    assert log is not None
    assert log.log_start_offset == LOG_START
    assert log.log_end_offset >= at_least
    # The file with the id is not synced when a log is made.
    assert log.topic_id in (ID_A, NIL)
    offsets = [
        header.last_offset
        for piece in _pieces(log)
        for _, header in iterate_batches(memoryview(piece))
    ]
    assert offsets == list(range(LOG_START, log.log_end_offset))


def _pieces(log: Log) -> Iterator[bytes]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        piece = log.reader.read(
            offset, max_bytes=1 << 20, end_offset=log.log_end_offset, min_one_batch=True
        )
        assert piece is not None
        data = piece.file.read_at(piece.length, piece.position)
        yield data
        offset = [header for _, header in iterate_batches(memoryview(data))][-1].last_offset + 1


def folders(disk: Disk, path: str) -> set[str]:
    return {e.name for e in disk.filesystem.list_directory(path) if e.is_directory}


def test_all_of_a_log_moves_and_goes_on() -> None:
    """Segments, indexes, leader epochs, producer snapshots, offsets of the checkpoints."""
    node = Node()
    log = node.create()
    files = set(folders(node.disk, "/one"))
    log.durable_remote_offset = LOG_START + 1
    moved = node.move(log, "/two")
    check(moved, RECORDS + 3)
    assert moved.directory == "/two/a-0"
    assert moved.durable_remote_offset == LOG_START + 1
    assert node.manager.get(A0) is moved
    assert [d.partition_count for d in node.manager.directories] == [0, 1]
    append(moved, 5)
    node.manager.deletion.remove_deleted()
    assert folders(node.disk, "/one") == files - {"a-0"}
    node.manager.shutdown()
    log_again = node.start().get(A0)
    check(log_again, RECORDS + 8)
    assert log_again is not None
    assert log_again.durable_remote_offset == LOG_START + 1
    assert node.manager.directories[1].had_clean_shutdown


def send(log: Log, sequence: int) -> tuple[bool, int]:
    """A batch of an idempotent producer: whether it is a duplicate, and its offset."""
    batch = make_batch(b"x", producer_id=7, producer_epoch=0, base_sequence=sequence)
    info = log.writer.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    return info.duplicate, info.first_offset


@pytest.mark.parametrize("fails", [False, True])
def test_all_that_a_producer_has_in_flight_may_be_sent_again(fails: bool) -> None:
    """While a log is swapped its producers get a retriable error for what has been written."""
    node = Node()
    log = node.create()
    sent = [send(log, sequence)[1] for sequence in range(5)]
    if fails:
        target = node.directory("/two")
        copy = node.manager.moves.begin_move(log, target)
        node.manager.moves.before_take_out(log)
        node.manager.moves.take_out(log)
        node.manager.moves.finish_move(log, copy, target)
        opened = node.manager.moves.put_back(log, copy, target, SMALL)
        assert opened is not None
        log = opened
    else:
        log = node.move(log, "/two")
    assert [send(log, sequence) for sequence in range(5)] == [(True, offset) for offset in sent]
    assert not send(log, 5)[0]


@pytest.mark.parametrize(
    ("kind", "path"), [("create", ".snapshot"), ("open", ".log"), ("sync_directory", "/one")]
)
def test_a_log_that_could_not_be_closed_is_put_back_whole(kind: str, path: str) -> None:
    """For want of a descriptor: what closing writes for the next opening is not there.

    The log is one of which nothing was synced before.
    """
    node = Node()
    node.place = node.directory("/one").id
    log = node.manager.creation.get_or_create(A0, ID_A, CONFIG)
    sent = [send(log, sequence)[1] for sequence in range(5)]
    target = node.directory("/two")
    copy = node.manager.moves.begin_move(log, target)
    node.manager.moves.before_take_out(log)
    node.manager.moves.take_out(log)
    for segment in log.segments:
        segment.close()
    node.disk.filesystem.fail(kind, errno.EMFILE, path=path)
    with pytest.raises(DiskError):
        node.manager.moves.finish_move(log, copy, target)
    opened = node.manager.moves.put_back(log, copy, target, CONFIG)
    assert opened is not None
    assert not opened.needs_new_epoch
    assert [send(opened, sequence) for sequence in range(5)] == [(True, offset) for offset in sent]
    append(opened, 10)
    opened.flusher.flush()
    node.disk.filesystem.crash()
    again = node.start().get(A0)
    assert again is not None
    assert again.log_end_offset == 15
    assert send(again, 4) == (True, sent[4])


def test_a_log_that_was_neither_closed_nor_put_back_makes_a_stop_unclean() -> None:
    """In a directory that was stopped cleanly before: its producers would count as none."""
    node = Node()
    node.place = node.directory("/one").id
    node.manager.creation.get_or_create(A0, ID_A, CONFIG)
    node.manager.shutdown()
    log = node.start().get(A0)
    assert log is not None
    sent = [send(log, sequence)[1] for sequence in range(5)]
    target = node.directory("/two")
    copy = node.manager.moves.begin_move(log, target)
    node.manager.moves.before_take_out(log)
    node.manager.moves.take_out(log)
    node.disk.filesystem.fail("create", errno.EMFILE, path=".snapshot", times=2)
    with pytest.raises(DiskError):
        node.manager.moves.finish_move(log, copy, target)
    with pytest.raises(DiskError):
        node.manager.moves.put_back(log, copy, target, CONFIG)
    node.manager.shutdown()
    again = node.start().get(A0)
    assert again is not None
    assert [send(again, sequence) for sequence in range(5)] == [(True, offset) for offset in sent]


def test_a_log_whose_copy_was_not_finished_is_opened_as_it_was_closed() -> None:
    """Its last segments counted as such that somebody had put there, with gaps."""
    node = Node()
    log = node.create()
    append(log, 5)
    log.writer.roll()
    target = node.directory("/two")
    copy = node.manager.moves.begin_move(log, target)
    node.manager.moves.before_take_out(log)
    node.manager.moves.take_out(log)
    node.disk.filesystem.fail("open", errno.EMFILE, path="-future")
    node.disk.filesystem.fail("create", errno.EMFILE, path="-future")
    with pytest.raises(DiskError):
        node.manager.moves.finish_move(log, copy, target)
    opened = node.manager.moves.put_back(log, copy, target, SMALL)
    assert opened is not None
    assert opened.set_aside == ()
    assert opened.gaps_until is None
    assert opened.active_base_offset == opened.log_end_offset == RECORDS + 5


def test_a_copy_whose_name_could_not_be_synced_does_not_serve_later() -> None:
    """The store still says that the log moves, and the log goes on where it was."""
    node = Node()
    log = node.create()
    target = node.directory("/two")
    copy = node.manager.moves.begin_move(log, target)
    node.manager.moves.before_take_out(log)
    node.manager.moves.take_out(log)
    node.manager.moves.finish_move(log, copy, target)
    node.place = target.id
    node.disk.filesystem.fail("sync_directory", errno.EMFILE, path="/two")
    with pytest.raises(DiskError):
        node.manager.moves.swap(log, copy, target, SMALL)
    opened = node.manager.moves.put_back(log, copy, target, SMALL)
    assert opened is not None
    append(opened, 10)
    opened.flusher.flush()
    node.disk.filesystem.crash(KEEP_ALL)
    check(node.start().get(A0), RECORDS + 10)


@pytest.mark.parametrize(
    ("kind", "code"), [("open", errno.EMFILE), ("read", errno.EIO), ("list", errno.EMFILE)]
)
def test_a_copy_that_cannot_be_opened_does_not_take_the_logs_place(kind: str, code: int) -> None:
    """The log was gone by then from where it is put back: it began again there, empty."""
    node = Node()
    log = node.create()
    sent = [send(log, sequence)[1] for sequence in range(5)]
    target = node.directory("/two")
    copy = node.manager.moves.begin_move(log, target)
    node.manager.moves.before_take_out(log)
    node.manager.moves.take_out(log)
    node.manager.moves.finish_move(log, copy, target)
    node.place = target.id
    node.disk.filesystem.fail(kind, code, path="/two/a-0")
    with pytest.raises(DiskError):
        node.manager.moves.swap(log, copy, target, SMALL)
    opened = node.manager.moves.put_back(log, copy, target, SMALL)
    assert opened is not None
    assert opened.directory == "/one/a-0"
    assert [send(opened, sequence) for sequence in range(5)] == [(True, offset) for offset in sent]
    append(opened, 5)
    check(opened, RECORDS + 10)
    assert node.manager.get(A0) is opened
    node.disk.filesystem.crash(KEEP_ALL)
    check(node.start().get(A0), RECORDS + 10)


def test_a_log_that_is_deleted_instead_of_taken_out_is_forgotten() -> None:
    """The checkpoints' word of it is not that of the next log of its name."""
    node = Node()
    log = node.create()
    node.manager.moves.before_take_out(log)
    node.manager.deletion.delete(A0)
    made = node.manager.creation.get_or_create(A0, ID_B, SMALL)
    append(made, 2)
    node.manager.moves.not_taken_out(log)
    append(made, 2)
    made.flusher.flush()
    node.disk.filesystem.crash()
    again = node.start().get(A0)
    assert again is not None
    assert (again.topic_id, again.log_start_offset, again.log_end_offset) == (ID_B, 0, 4)


@pytest.mark.parametrize("keep", [None, "all", 1, 2])
def test_a_crash_at_any_step_leaves_one_whole_log(keep: int | str | None) -> None:
    """Whatever of what was not synced survives; and the start after that finds the same."""
    whole = Node()
    log = whole.create()
    before = whole.disk.filesystem.changes
    whole.move(log, "/two")
    steps = range(whole.disk.filesystem.changes - before + 1)
    assert len(steps) > 30
    places = set()
    for step in swept(steps, 3):
        node = Node()
        log = node.create()
        node.disk.filesystem.stop_after = node.disk.filesystem.changes + step
        with suppress(PowerCut):
            node.move(log, "/two")
        kept: Keep = Random(keep) if isinstance(keep, int) else keep
        node.disk.filesystem.crash(kept)
        for _ in range(2):
            manager = node.start()
            check(manager.get(A0), RECORDS)
            manager.deletion.remove_deleted()
            names = [folders(node.disk, path) for path in ("/one", "/two")]
            assert [("a-0" in one) for one in names].count(True) == 1, step
            assert not any(name.endswith(("-future", "-delete")) for one in names for name in one)
            log_now = manager.get(A0)
            assert log_now is not None
            append(log_now)
            log_now.flusher.flush()
            manager.shutdown()
            places.add(log_now.directory)
    assert places == {"/one/a-0", "/two/a-0"}


def test_a_copy_of_nothing_known_is_left_alone() -> None:
    """A directory of Kafka's, whose log is nowhere to be seen: perhaps it is all there is."""
    node = Node()
    node.manager.shutdown()
    node.disk.filesystem.mkdir("/two/b-0.0123456789abcdef0123456789abcdef-future")
    manager = node.start()
    manager.deletion.remove_deleted()
    assert "b-0.0123456789abcdef0123456789abcdef-future" in folders(node.disk, "/two")


@pytest.mark.parametrize("kind", ["write", "sync", "rename"])
def test_a_target_that_fails_leaves_the_log_where_it_is(kind: str) -> None:
    node = Node()
    log = node.create()
    node.disk.filesystem.fail(kind, errno.EIO, path="-future")
    with pytest.raises(DiskError):
        node.move(log, "/two")
    if node.manager.get(A0) is None:
        target = node.directory("/two")
        copy = node.manager.moves.begin_move(log, node.directory("/one"))
        node.manager.moves.put_back(log, copy, target, SMALL)
    check(node.manager.get(A0), RECORDS)
    # Its other logs do not wait for a failure of their own.
    assert [d.path for d in node.manager.offline_directories] == ["/two"]
    assert A0 not in node.manager.offline


@pytest.mark.parametrize("fails_late", [False, True])
def test_no_log_moves_to_a_directory_that_has_failed_meanwhile(fails_late: bool) -> None:
    """Under another log: what the copy asks of the disk may go well all the same."""
    node = Node()
    log = node.create()
    manager, target = node.manager, node.directory("/two")
    copy = manager.moves.begin_move(log, target)
    manager.moves.copy_segments(log, copy)
    manager.moves.before_take_out(log)
    manager.moves.take_out(log)
    if fails_late:
        # While the copy is finished; nothing but checkpoints is left to be written.
        copy.finish()
        copy.finish = lambda: manager.fail(target, DiskError("I/O error", "/two"))  # type: ignore[method-assign]  # the test's own
    else:
        manager.fail(target, DiskError("I/O error", "/two"))
    with pytest.raises(DiskError, match="offline"):
        manager.moves.finish_move(log, copy, target)
    opened = manager.moves.put_back(log, copy, target, SMALL)
    assert opened is not None
    node.disk.filesystem.crash(KEEP_ALL)
    found = node.start().get(A0)
    assert found is not None
    assert (found.directory, found.log_start_offset) == ("/one/a-0", LOG_START)


@pytest.mark.parametrize(
    ("kind", "code"), [("read", errno.EIO), ("write", errno.ENOSPC), ("open", errno.EMFILE)]
)
def test_what_says_nothing_of_the_targets_disk_fails_the_move_alone(kind: str, code: int) -> None:
    """Bad blocks below the log that moves; a copy for which there is no room, or no descriptor."""
    node = Node()
    log = node.create()
    node.disk.filesystem.fail(kind, code, path="/one/a-0" if kind == "read" else "-future")
    with pytest.raises(DiskError):
        node.move(log, "/two")
    check(node.manager.get(A0), RECORDS)
    assert node.manager.offline_directories == []
    assert not any(directory.is_full for directory in node.manager.directories)


def test_no_log_is_made_of_the_folder_that_a_moved_one_has_left() -> None:
    """It could not be renamed. Nor does the log move back to where it is."""
    node = Node()
    log = node.create()
    node.disk.filesystem.fail("rename", errno.ENOSPC, path="/one/a-0")
    log = node.move(log, "/two")
    assert "a-0" in folders(node.disk, "/one")
    check(log, RECORDS)
    manager = node.manager
    with pytest.raises(LogDirectoryFullError):
        manager.moves.begin_move(log, node.directory("/one"))
    manager.deletion.delete(A0)
    node.place = node.directory("/one").id
    with pytest.raises(LogDirectoryFullError):
        manager.creation.get_or_create(A0, ID_B, SMALL)
    manager.deletion.remove_deleted()
    for _ in range(2):
        # The reserve is released, then taken again.
        manager.room.check()
    assert manager.creation.get_or_create(A0, ID_B, SMALL).log_end_offset == 0


def test_retention_goes_on_while_a_log_is_copied() -> None:
    """What it takes is not in the copy."""
    node = Node()
    log = node.create()
    copy = node.manager.moves.begin_move(log, node.directory("/two"))
    node.manager.moves.copy_segments(log, copy)
    before = copy.size_bytes
    log.delete_records(RECORDS - 1)
    assert log.retention.delete_old_segments() > 0
    append(log)
    assert node.manager.moves.copy_segments(log, copy) > 0
    assert copy.size_bytes < before
    assert copy.end_offset == log.log_end_offset
    names = {e.name for e in node.disk.filesystem.list_directory(copy.target)}
    assert len(names) == len(log.segment_facts())


def test_how_far_a_log_was_compacted_moves_with_it() -> None:
    """It tells the recovery that offsets may be missing."""
    node = Node()
    log = node.create()
    node.directory("/one").write_checkpoint(CLEANER_CHECKPOINT, lambda _: {A0: 20})
    node.move(log, "/two")
    assert node.directory("/one").checkpointed(CLEANER_CHECKPOINT, A0) is None
    node.manager.shutdown()
    node.start()
    assert node.directory("/two").checkpointed(CLEANER_CHECKPOINT, A0) == 20


@pytest.mark.parametrize("path", ["/one", "/two"])
def test_a_checkpoint_that_is_being_written_keeps_a_log_that_moves_meanwhile(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Without its recovery point all of it would be doubted after a kill, gaps above all."""
    node = Node()
    log = node.create()
    write = LogDirectory.write_checkpoint

    def move_first(directory: LogDirectory, name: str, change: Change) -> bool:
        if directory.path != path:
            return write(directory, name, change)
        monkeypatch.undo()
        node.move(log, "/two")
        return write(directory, name, change)

    monkeypatch.setattr(LogDirectory, "write_checkpoint", move_first)
    node.manager.checkpoints.write_recovery_points()
    end = log.log_end_offset
    assert node.directory("/two").checkpointed(RECOVERY_POINT_CHECKPOINT, A0) == end
