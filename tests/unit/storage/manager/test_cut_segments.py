"""Closed segments that were cut: alerts, and filling them up with what another replica has."""

import pytest

from protocol.records.batch import set_offset_and_epoch
from storage.cleaner.cleaning import CleaningAbortedError
from storage.environment.alerts import AlertKind
from storage.errors import CorruptFileError, CutSegmentError, InvalidFillError
from storage.log.log import Log
from storage.manager.cut_segments import SegmentFill
from storage.manager.log_manager import LogManager
from tests.unit.storage.log.log_model import read_batches, small_segments
from tests.unit.storage.manager.test_log_manager import A0, ID_A, Disk, append

CONFIG = small_segments(400)
COUNT = 12


class World:
    """A log of several segments whose first was cut within its third batch, started again."""

    def __init__(self, *, keep: int = 2) -> None:
        self.disk = Disk()
        manager = self.disk.started(CONFIG)
        log = manager.creation.get_or_create(A0, ID_A, CONFIG)
        append(log, COUNT, value=b"v" * 20)
        self.batches = read_batches(log)
        first, second, *_ = log.segments
        self.path, self.end = first.path, second.base_offset
        assert self.end >= keep + 2
        manager.shutdown()
        file = self.disk.filesystem.open(self.path)
        file.truncate(keep * len(self.batches[0]) + 7)
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
