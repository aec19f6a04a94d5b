"""Closed segments that were cut: alerts, and filling them up with what another replica has."""

import pytest

from protocol.records.batch import set_offset_and_epoch
from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from storage.cleaner.cleaning import CleaningAbortedError
from storage.environment.alerts import AlertKind
from storage.errors import CorruptFileError, CutSegmentError, InvalidFillError
from storage.log.log import Log
from storage.manager import cut_segments
from storage.manager.cut_segments import SegmentFill
from storage.manager.log_manager import LogManager
from storage.types.append_origin import AppendOrigin
from tests.unit.storage.log.log_model import NOW_MS, read_batches, small_segments
from tests.unit.storage.manager.log_disk import A0, ID_A, Disk, append

CONFIG = small_segments(400)
COUNT = 12
CHECKPOINTS = (".kafka_cleanshutdown", "recovery-point-offset-checkpoint")


def append_transactional(log: Log, value: bytes) -> None:
    batch = build_batch(
        [(b"k", value, (), NOW_MS)],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    log.writer.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=NOW_MS)
    log.update_high_watermark(log.log_end_offset)


def append_marker(log: Log, *, commit: bool) -> None:
    marker = build_end_transaction_marker(
        producer_id=7,
        producer_epoch=0,
        commit=commit,
        coordinator_epoch=1,
        timestamp_ms=NOW_MS,
    )
    log.writer.append_as_leader(
        memoryview(marker), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    log.update_high_watermark(log.log_end_offset)


class World:
    """A log of several segments whose first was cut within its third batch, started again."""

    def __init__(self, *, keep: int = 2, damage: str = "within a batch", aborts: int = -1) -> None:
        """`aborts`: the offset of the marker that aborts a transaction which begins before it."""
        self.disk = Disk()
        manager = self.disk.started(CONFIG)
        log = manager.creation.get_or_create(A0, ID_A, CONFIG)
        for offset in range(COUNT):
            if offset == aborts:
                append_marker(log, commit=False)
            elif offset == aborts - 1:
                append_transactional(log, b"v" * 20)
            else:
                append(log, value=b"v" * 20)
        self.batches = read_batches(log)
        first, second, *_ = log.segments
        self.path, self.end = first.path, second.base_offset
        self.starts = [segment.base_offset for segment in log.segments]
        assert self.end >= keep + 2
        manager.shutdown()
        filesystem = self.disk.filesystem
        if damage == "a file is missing":
            filesystem.unlink(second.path)
        else:
            file = filesystem.open(self.path)
            sizes = {"within a batch": keep * len(self.batches[0]) + 7, "nothing is left": 0}
            file.truncate(sizes.get(damage, keep * len(self.batches[0])))
            file.close()
        self.manager: LogManager = self.disk.started(CONFIG)
        found = self.manager.get(A0)
        assert found is not None
        self.log: Log = found

    def cut(self) -> CutSegmentError:
        """What a reader is refused with."""
        with pytest.raises(CutSegmentError) as caught:
            read_batches(self.log)
        return caught.value

    def begin(self) -> SegmentFill:
        fill = self.manager.cut_segments.begin(self.log, self.cut())
        assert fill is not None
        return fill

    @property
    def alerts(self) -> list[str]:
        return [
            one.subject for one in self.manager.alerts.all() if one.kind is AlertKind.SEGMENT_CUT
        ]


def test_what_is_missing_is_put_in_its_place() -> None:
    """In pieces, the last batch of each cut off; the next start finds the whole segment."""
    world = World()
    fill = world.begin()
    assert (fill.next_offset, fill.end_offset) == (2, world.end)
    piece = world.batches[2] + world.batches[3][:50]
    assert not fill.add(memoryview(piece))
    assert fill.next_offset == 3
    # What it has already is passed over, and what belongs to the next segment.
    assert fill.add(memoryview(b"".join(world.batches[2:])))
    fill.put()
    fill.close()
    assert read_batches(world.log) == world.batches
    world.manager.shutdown()
    log = world.disk.started(CONFIG).get(A0)
    assert log is not None
    assert read_batches(log) == world.batches


def test_what_the_other_replica_has_compacted_is_not_waited_for() -> None:
    world = World()
    fill = world.begin()
    assert fill.add(memoryview(b"".join(world.batches[world.end :])))
    fill.put()
    fill.close()
    read = read_batches(world.log, has_gaps=True)
    assert read == world.batches[:2] + world.batches[world.end :]


@pytest.mark.parametrize("fault", ["epoch", "crc", "overlap"])
def test_batches_that_are_not_those_missing_are_refused(fault: str) -> None:
    """And the log is as it was: what is left is read, what is missing refused."""
    world = World()
    batch = bytearray(world.batches[2])
    if fault == "epoch":
        set_offset_and_epoch(batch, 0, 2, 1)
    elif fault == "crc":
        batch[-1] ^= 1
    else:
        batch[23:27] = (50).to_bytes(4, "big")
    fill = world.begin()
    with pytest.raises(InvalidFillError):
        fill.add(memoryview(bytes(batch)))
    fill.close()
    assert world.cut().offset == 2
    names = [entry.name for entry in world.disk.filesystem.list_directory(world.log.directory)]
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    again = world.begin()
    assert again.add(memoryview(b"".join(world.batches[2:])))
    again.put()
    again.close()
    assert read_batches(world.log) == world.batches


def test_damage_before_the_cut_is_not_written_again() -> None:
    world = World()
    file = world.disk.filesystem.open(world.path)
    file.write_at(b"\xff", len(world.batches[0]) - 1)
    error = CutSegmentError(world.path, 2, world.end)
    with pytest.raises(CorruptFileError):
        world.manager.cut_segments.begin(world.log, error)
    assert world.manager.cleaning.take(world.log)


def test_a_log_that_is_changed_otherwise_is_left_alone() -> None:
    """While its old segments are deleted, or it is moved; and the other way round."""
    world = World()
    error = world.cut()
    assert world.manager.cleaning.try_pause(A0)
    assert world.manager.cut_segments.begin(world.log, error) is None
    world.manager.cleaning.resume(A0)
    fill = world.begin()
    assert not world.manager.cleaning.try_pause(A0)
    assert world.manager.cut_segments.begin(world.log, error) is None
    fill.close()
    assert world.manager.cleaning.try_pause(A0)


def test_a_deleted_log_is_not_filled_up() -> None:
    world = World()
    fill = world.begin()
    world.manager.cleaning.abandon([A0], timeout_s=0.0)
    with pytest.raises(CleaningAbortedError):
        fill.add(memoryview(world.batches[2]))
    fill.close()


def test_nothing_is_begun_while_the_broker_stops() -> None:
    world = World()
    fill = world.begin()
    world.manager.cut_segments.stop()
    with pytest.raises(CleaningAbortedError):
        fill.add(memoryview(world.batches[2]))
    fill.close()
    with pytest.raises(CleaningAbortedError):
        world.manager.cut_segments.begin(world.log, world.cut())


def test_the_alert_lasts_until_the_segment_is_whole() -> None:
    world = World()
    segments = world.manager.cut_segments
    segments.report(A0, world.cut())
    segments.report(A0, world.cut())
    segments.refresh()
    assert world.alerts == ["a-0"]
    fill = world.begin()
    fill.add(memoryview(b"".join(world.batches[2:])))
    fill.put()
    fill.close()
    segments.refresh()
    assert world.alerts == []


def test_an_active_segment_is_filled_up_once_the_next_append_has_closed_it() -> None:
    """Its alert stays from the first reader that finds it cut until then."""
    disk = Disk()
    manager = disk.started(small_segments(9999))
    log = manager.creation.get_or_create(A0, ID_A, small_segments(9999))
    for _ in range(4):
        append(log, value=b"v" * 20)
    batches = read_batches(log)
    active = log.segments.active
    file = active.open_file()
    file.truncate(2 * len(batches[0]) + 7)
    file.is_short = True
    segments = manager.cut_segments
    with pytest.raises(CutSegmentError) as caught:
        read_batches(log)
    segments.report(A0, caught.value)
    assert segments.begin(log, caught.value) is None
    segments.refresh()
    assert [one.subject for one in manager.alerts.all()] == [str(A0)]
    append(log, value=b"v" * 20)
    segments.refresh()
    assert [one.subject for one in manager.alerts.all()] == [str(A0)]
    with pytest.raises(CutSegmentError) as caught:
        read_batches(log)
    fill = segments.begin(log, caught.value)
    assert fill is not None
    assert (fill.next_offset, fill.end_offset) == (2, 4)
    assert fill.add(memoryview(b"".join(batches[2:])))
    fill.put()
    fill.close()
    segments.refresh()
    assert not manager.alerts.all()
    assert read_batches(log)[:4] == batches


@pytest.mark.parametrize("cleanup_policy", ["delete", "compact"])
@pytest.mark.parametrize("kept_batches", [0, 2])
def test_a_log_just_made_that_is_cut_between_batches_has_no_gap_of_compaction(
    kept_batches: int, cleanup_policy: str
) -> None:
    """No checkpoint knows it yet: readers were taken past what was cut off, without a word."""
    disk = Disk()
    config = small_segments(9999, cleanup_policy=(cleanup_policy,))
    manager = disk.started(config)
    log = manager.creation.get_or_create(A0, ID_A, config)
    for _ in range(4):
        append(log, value=b"v" * 20)
    batches = read_batches(log)
    file = log.segments.active.open_file()
    file.truncate(kept_batches * len(batches[0]))
    file.is_short = True
    with pytest.raises(CutSegmentError, match=r"offset 0 .* below 4 is missing"):
        read_batches(log)
    append(log, value=b"v" * 20)
    with pytest.raises(CutSegmentError, match=rf"offset {kept_batches} .* below 4 is missing"):
        read_batches(log)


@pytest.mark.parametrize("is_replicated", [True, False])
def test_an_older_copy_that_was_put_over_a_log_leaves_no_gap_where_others_have_it(
    is_replicated: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """With the marker of its clean stop; segments that are younger than the copy stay beside it.

    Nor at the start after that. Without other replicas the gap is passed over, as of segments that
    an operator has put back, and told.
    """
    disk = Disk()
    manager = disk.started(CONFIG)
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 6, value=b"v" * 20)
    manager.shutdown()
    paths = [f"/one/{name}" for name in CHECKPOINTS if disk.filesystem.exists(f"/one/{name}")]
    paths += [f"/one/a-0/{entry.name}" for entry in disk.filesystem.list_directory("/one/a-0")]
    older = {path: disk.filesystem.peek(path) for path in paths}
    manager = disk.started(CONFIG)
    log = manager.get(A0)
    assert log is not None
    first = log.log_end_offset
    append(log, COUNT, value=b"v" * 20)
    following = next(one.base_offset for one in log.segments if one.base_offset > first)
    manager.shutdown()
    for path, data in older.items():
        disk.filesystem.poke(path, data)
    for _ in range(2):
        manager = disk.manager()
        jobs = manager.startup.load_jobs(
            lambda _topic: CONFIG, is_replicated=lambda _log: is_replicated
        )
        for job in jobs:
            job()
        found = manager.get(A0)
        assert found is not None
        if is_replicated:
            with pytest.raises(CutSegmentError, match=f"offset {first} .* below {following} is"):
                read_batches(found)
        else:
            assert len(read_batches(found, has_gaps=True)) == 6 + COUNT - (following - first)
            assert f"partition=a-0 log_ended={first} last_segment=" in caplog.text
        manager.shutdown()


def test_the_alert_goes_with_the_log() -> None:
    world = World()
    world.manager.cut_segments.report(A0, world.cut())
    world.manager.deletion.delete(A0)
    world.manager.deletion.remove_deleted()
    assert world.alerts == []


def test_compaction_goes_on_with_a_log_that_was_filled_up() -> None:
    """A segment that ends within a batch is a damage to it."""
    world = World()
    world.manager.cleaning.mark_uncleanable(A0, "it ends within a batch")
    fill = world.begin()
    fill.add(memoryview(b"".join(world.batches[2:])))
    fill.put()
    fill.close()
    assert not world.manager.cleaning.uncleanable


@pytest.mark.parametrize(
    ("damage", "first"), [("between batches", 2), ("nothing is left", 0), ("a file is missing", -1)]
)
def test_whole_batches_that_are_missing_are_put_in_their_place(damage: str, first: int) -> None:
    """Where the next segment begins says that they were there."""
    world = World(damage=damage)
    end = world.starts[2] if first < 0 else world.end
    first = world.end if first < 0 else first
    fill = world.begin()
    assert (fill.next_offset, fill.end_offset) == (first, end)
    assert fill.add(memoryview(b"".join(world.batches[first:end])))
    fill.put()
    fill.close()
    assert read_batches(world.log) == world.batches
    world.manager.shutdown()
    log = world.disk.started(CONFIG).get(A0)
    assert log is not None
    assert read_batches(log) == world.batches


def test_a_transaction_whose_index_is_missing_is_not_taken_for_committed() -> None:
    """Every replica is asked; none can say what the index had."""
    world = World(damage="a file is missing")
    aborts = world.starts[1] + 1
    world = World(damage="a file is missing", aborts=aborts)
    assert world.starts[1] < aborts < world.starts[2]
    fill = world.begin()
    for _ in range(2):
        with pytest.raises(InvalidFillError, match=f"offset {aborts} aborts is not in the index"):
            fill.add(memoryview(b"".join(world.batches[fill.next_offset :])))
    fill.close()
    assert world.cut().offset == world.starts[1]


def test_an_aborted_transaction_that_the_index_has_is_filled_up() -> None:
    """The index is a file of its own."""
    world = World(damage="between batches", keep=1, aborts=2)
    fill = world.begin()
    assert fill.add(memoryview(b"".join(world.batches[1:])))
    fill.put()
    fill.close()
    assert read_batches(world.log) == world.batches
    assert world.log.reader.aborted_transactions(0, 3) == [(7, 1)]


def test_more_than_a_segment_can_hold_is_not_filled_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of several segments were lost."""
    world = World()
    monkeypatch.setattr(cut_segments, "SIZE_MAX", 3 * len(world.batches[0]))
    fill = world.begin()
    with pytest.raises(InvalidFillError, match="more is missing than one segment can hold"):
        fill.add(memoryview(b"".join(world.batches[2:])))
    fill.close()
    assert world.cut().offset == 2
