"""A gap between two segments: whether compaction has left it there, or a power cut has made it."""

from collections.abc import Callable
from random import Random
from uuid import UUID

import pytest

from config.topic import TopicConfig
from storage.checkpoints.checkpoint_files import (
    CLEANER_CHECKPOINT,
    NO_GAPS_ABOVE,
    RECOVERY_POINT_CHECKPOINT,
    decode_offsets,
    encode_offsets,
)
from storage.checkpoints.log_directory import Change
from storage.cleaner.cleaning import CleaningAbortedError
from storage.errors import CutSegmentError
from storage.log.directory_pace import DirectoryPace
from storage.log.log import Log
from storage.manager.log_manager import LogManager
from storage.types.log_files import RELATIVE_OFFSET_MAX
from storage.types.topic_partition import TopicPartition
from tests.effort import swept
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem, Keep
from tests.unit.storage.log.log_model import NOW_MS, make_batch, read_batches, read_records
from tests.unit.storage.log.log_model import small_segments as small
from tests.unit.storage.manager.log_disk import A0, ID_A, Disk, append, killed

POLICIES = [("delete",), ("compact",), ("compact", "delete")]
RECOVERY_POINTS = f"/one/{RECOVERY_POINT_CHECKPOINT}"


def settings(*policy: str) -> TopicConfig:
    return small(400, cleanup_policy=policy, min_cleanable_dirty_ratio=0.01)


COMPACT = settings("compact")


def found(manager: LogManager) -> Log:
    log = manager.get(A0)
    assert log is not None
    return log


def lose(disk: Disk, path: str, what: str, size: int) -> None:
    """The power has gone, and this of a file had not been written."""
    filesystem = disk.filesystem
    if what == "the file":
        filesystem.unlink(path)
    else:
        filesystem.poke(path, filesystem.peek(path)[: size if what == "its end" else 0])


def as_written_by_another(disk: Disk) -> None:
    """Whoever writes the checkpoint leaves out what it has no log of."""
    offsets = decode_offsets(disk.filesystem.peek(RECOVERY_POINTS), "")
    offsets.pop(NO_GAPS_ABOVE, None)
    disk.filesystem.poke(RECOVERY_POINTS, encode_offsets(offsets))


# -- what a power cut has taken ------------------------------------------------------------------


@pytest.mark.parametrize("was_compacted", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("lost", ["its end", "all of it", "the file"])
def test_a_closed_segment_that_lost_its_end_is_found_whatever_the_policy(
    policy: tuple[str, ...], lost: str, *, was_compacted: bool
) -> None:
    """The log ends there, and says so: acknowledged records are not passed over in silence."""
    disk = Disk()
    config = settings(*policy)
    manager = disk.started(config)
    log = manager.creation.get_or_create(A0, ID_A, config)
    if was_compacted:
        append(log, 20, value=b"v" * 40)
        log.flusher.flush()
        manager.compaction.clean_dirtiest()
    flushed = log.log_end_offset
    append(log, 20, value=b"v" * 40)
    expected = read_records(log)
    manager.checkpoints.write_high_watermarks()
    segments = [one for one in log.segment_facts() if one.base_offset >= flushed]
    # Of one that has lost its beginning the rest is kept.
    _, cut, following, *_ = segments
    size = len(make_batch(b"v" * 40))
    killed(disk)
    lose(disk, cut.path, lost, 2 * size)
    log = found(disk.started(config))
    end = cut.base_offset + (2 if lost == "its end" else 0)
    assert log.log_end_offset == end < following.base_offset
    assert log.is_short
    assert log.needs_new_epoch
    assert log.set_aside == (f"{log.directory}/set-aside-1",)
    assert read_records(log) == [one for one in expected if one.offset < end]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_that_was_changed_hides_no_loss(policy: tuple[str, ...]) -> None:
    """The cleaner's checkpoint knows the log for ever."""
    disk = Disk()
    manager = disk.started(COMPACT)
    log = manager.creation.get_or_create(A0, ID_A, COMPACT)
    append(log, 20, value=b"v" * 40)
    log.flusher.flush()
    assert manager.compaction.clean_dirtiest() is not None
    kept = read_records(log)
    flushed = log.log_end_offset
    append(log, 20, value=b"v" * 40)
    cut = next(one for one in log.segment_facts() if one.base_offset >= flushed)
    killed(disk)
    disk.filesystem.poke(cut.path, b"")
    log = found(disk.started(settings(*policy)))
    assert log.log_end_offset == cut.base_offset
    assert kept == [one for one in read_records(log) if one.offset < flushed]


def test_a_compacted_segment_that_is_cut_while_it_serves_is_refused_not_passed_over() -> None:
    """What a start has found may have gaps; what was written since has none."""
    disk = Disk()
    manager = disk.started(COMPACT)
    manager.creation.get_or_create(A0, ID_A, COMPACT)
    manager.shutdown()
    log = found(disk.started(COMPACT))
    append(log, 2, value=b"v" * 40)
    size = log.segments.active.size // 2
    file = log.segments.active.open_file()
    file.truncate(size)
    file.is_short = True
    with pytest.raises(CutSegmentError, match=r"offset 0 .* below 2 is missing"):
        read_batches(log)
    append(log, 6, value=b"v" * 40)
    with pytest.raises(CutSegmentError, match=r"offset 1 .* below 2 is missing"):
        read_batches(log)


# -- what compaction has left --------------------------------------------------------------------


def sparse(log: Log, *, keys: int = 20) -> None:
    """Keys that come twice, in another order: compaction leaves gaps everywhere."""
    rng = Random(1)
    order = [*range(keys), *range(keys)]
    rng.shuffle(order)
    for key in order:
        append(log, key=b"%d" % key, value=b"v" * 40)


def border_gaps(log: Log) -> int:
    """Segments that end before the next one begins."""
    bases = [one.base_offset for one in log.segments]
    return sum(one.next_offset() < base for one, base in zip(log.segments, bases[1:], strict=False))


def test_what_compaction_leaves_is_there_whenever_the_power_goes() -> None:
    """It works above the recovery point that the checkpoint had: that is written before."""
    disk = Disk()
    manager = disk.started(COMPACT)
    log = manager.creation.get_or_create(A0, ID_A, COMPACT)
    disk.filesystem.sync_directory("/")
    sparse(log)
    log.flusher.flush(log.active_base_offset)
    flushed = log.recovery_point
    expected = {(one.key, one.value) for one in read_records(log) if one.offset < flushed}
    cuts: list[tuple[FakeFilesystem, Keep]] = []

    def cut(_event: object) -> None:
        kept: tuple[Keep, ...] = (None, KEEP_ALL, Random(len(cuts)))
        cuts.extend((disk.filesystem.after_crash(keep), keep) for keep in kept)

    disk.filesystem.observer = cut
    assert manager.compaction.clean_dirtiest() is not None
    disk.filesystem.observer = None
    assert border_gaps(log) > 3
    cuts.append((disk.filesystem.after_crash(KEEP_ALL), KEEP_ALL))
    assert len(cuts) > 100
    for disk.filesystem, keep in swept(cuts, 40):
        again = found(disk.started(COMPACT))
        assert again.set_aside == (), keep
        assert again.log_end_offset >= flushed
        assert {(one.key, one.value) for one in read_records(again)} >= expected


def test_a_log_that_is_being_deleted_leaves_its_namesake_no_recovery_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its compaction was about to write it."""
    disk = Disk()
    manager = disk.started(COMPACT)
    log = manager.creation.get_or_create(A0, ID_A, COMPACT)
    sparse(log)
    log.flusher.flush()
    directory = manager.directories[0]
    write = directory.write_checkpoint

    def delete_first(name: str, change: Change) -> bool:
        monkeypatch.undo()
        manager.deletion.delete(A0)
        return write(name, change)

    monkeypatch.setattr(directory, "write_checkpoint", delete_first)
    assert manager.compaction.clean_dirtiest() is None
    assert directory.checkpointed(RECOVERY_POINT_CHECKPOINT, A0) is None


# -- what a follower takes over ------------------------------------------------------------------


def at(offset: int) -> memoryview:
    batch = make_batch(b"v" * 40, timestamp_ms=NOW_MS + offset % 1000)
    batch[:8] = offset.to_bytes(8, "big")
    return batch


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_follower_has_no_gap_between_segments(policy: tuple[str, ...], *, behind: bool) -> None:
    """Its leader's log has one before every batch: nothing of that is lost to a power cut."""
    disk = Disk()
    config = settings(*policy)
    manager = disk.started(config)
    log = manager.creation.get_or_create(A0, ID_A, config)
    if behind:
        log.disk_work.leave_to(DirectoryPace(disk.clock.monotonic_ms, disk.clock.monotonic_s))
    offsets = [number * 3 + 1 for number in range(30)]
    for offset in offsets:
        log.follower.append(at(offset), fetch_offset=log.next_offset)
        log.disk_work.write_queued()
    assert log.log_end_offset == offsets[-1] + 1
    assert border_gaps(log) == 0
    assert len(log.segments) > 4
    bases = [one.base_offset for one in log.segments]
    log.update_high_watermark(log.log_end_offset)
    killed(disk)
    log = found(disk.started(config))
    assert [one.offset for one in read_records(log)] == offsets
    assert [one.base_offset for one in log.segments] == bases
    assert log.set_aside == ()
    # And what is taken from it is found.
    killed(disk)
    cut = log.segment_facts()[2]
    size = len(at(0))
    disk.filesystem.poke(cut.path, disk.filesystem.peek(cut.path)[:size])
    log = found(disk.started(config))
    kept = [one.offset for one in read_records(log)]
    assert kept == offsets[: len(kept)]
    assert log.log_end_offset == kept[-1] + 1 < log.log_end_offset + len(log.set_aside)


def test_a_gap_that_is_longer_than_an_index_can_say_lies_between_segments() -> None:
    disk = Disk()
    manager = disk.started(COMPACT)
    log = manager.creation.get_or_create(A0, ID_A, COMPACT)
    far = RELATIVE_OFFSET_MAX + 10
    offsets = [0, 1, far, far + 1, far + 9]
    for offset in offsets:
        log.follower.append(at(offset), fetch_offset=log.log_end_offset)
    log.update_high_watermark(log.log_end_offset)
    assert [one.base_offset for one in log.segments] == [0, far]
    assert [one.offset for one in read_records(log)] == offsets
    killed(disk)
    log = found(disk.started(COMPACT))
    assert [one.offset for one in read_records(log)] == offsets


# -- directories that others have written --------------------------------------------------------


def compacted_by_another(disk: Disk) -> list[int]:
    """Gaps between segments above the recovery point, as others may leave them; the offsets."""
    manager = disk.started(COMPACT)
    log = manager.creation.get_or_create(A0, ID_A, COMPACT)
    manager.checkpoints.write()
    sparse(log)
    log.flusher.flush()
    assert manager.compaction.clean_dirtiest() is not None
    assert border_gaps(log) > 3
    offsets = [one.offset for one in read_records(log)]
    killed(disk)
    disk.filesystem.poke(RECOVERY_POINTS, encode_offsets({A0: 0}))
    return offsets


def test_gaps_that_another_broker_has_left_are_none_of_ours() -> None:
    """Also after the next kill: what lies above the recovery point is still theirs."""
    disk = Disk()
    offsets = compacted_by_another(disk)
    for _ in range(2):
        manager = disk.started(COMPACT)
        assert [one.offset for one in read_records(found(manager))] == offsets
        assert not manager.directories[0].no_gaps_above
        manager.checkpoints.write()
        killed(disk)


@pytest.mark.parametrize("stops_cleanly", [False, True])
def test_after_a_clean_stop_of_whomever_gaps_are_known(*, stops_cleanly: bool) -> None:
    """All of it is on disk: what is written from then on is ours."""
    disk = Disk()
    offsets = compacted_by_another(disk)
    manager = disk.started(COMPACT)
    if stops_cleanly:
        manager.shutdown()
        as_written_by_another(disk)
    else:
        killed(disk)
    manager = disk.started(COMPACT)
    assert manager.directories[0].no_gaps_above is stops_cleanly
    log = found(manager)
    append(log, 20, value=b"v" * 40)
    cut = log.segment_facts()[-2]
    end = log.log_end_offset
    killed(disk)
    disk.filesystem.poke(cut.path, b"")
    log = found(disk.started(COMPACT))
    assert log.log_end_offset == (cut.base_offset if stops_cleanly else end)
    assert [one.offset for one in read_records(log)][: len(offsets)] == offsets


def test_a_broker_that_knows_nothing_of_it_makes_a_directory_unknown_again() -> None:
    """It drops the row with the entries of partitions that are not there."""
    disk = Disk()
    manager = disk.started(COMPACT)
    append(manager.creation.get_or_create(A0, ID_A, COMPACT))
    manager.checkpoints.write()
    assert NO_GAPS_ABOVE in decode_offsets(disk.filesystem.peek(RECOVERY_POINTS), "")
    killed(disk)
    as_written_by_another(disk)
    manager = disk.started(COMPACT)
    assert not manager.directories[0].no_gaps_above
    manager.checkpoints.write()
    assert NO_GAPS_ABOVE not in decode_offsets(disk.filesystem.peek(RECOVERY_POINTS), "")


def always(place: UUID | None) -> Callable[[TopicPartition], UUID | None]:
    return lambda _topic_partition: place


@pytest.mark.parametrize("stops_cleanly", [False, True])
def test_a_partition_that_was_moved_by_hand_keeps_its_gaps(*, stops_cleanly: bool) -> None:
    """The checkpoint of its new directory does not know it, and all else there is known."""
    disk = Disk("/one", "/two")
    manager = disk.started(COMPACT)
    log = manager.creation.get_or_create(A0, ID_A, COMPACT)
    home = log.directory.rpartition("/")[0]
    other = "/two" if home == "/one" else "/one"
    sparse(log)
    log.flusher.flush()
    assert manager.compaction.clean_dirtiest() is not None
    offsets = [one.offset for one in read_records(log)]
    ids = {one.path: one.id for one in manager.directories}
    if stops_cleanly:
        manager.shutdown()
    else:
        killed(disk)
    disk.filesystem.rename(log.directory, f"{other}/a-0")
    for assigned in (home, other):
        manager = disk.manager()
        manager.assigned = always(ids[assigned])
        manager.startup.load(lambda _topic: COMPACT)
        log = found(manager)
        assert log.directory == f"{other}/a-0"
        assert [one.offset for one in read_records(log)] == offsets
        assert log.set_aside == ()
        killed(disk)


def test_what_somebody_has_put_behind_a_gap_stays_after_a_kill() -> None:
    """Segments that a recovery had set aside: the start after a clean stop takes them in."""
    disk = Disk()
    manager = disk.started(COMPACT)
    log = manager.creation.get_or_create(A0, ID_A, COMPACT)
    append(log, 20, value=b"v" * 40)
    path = log.segments[1].path
    killed(disk)
    disk.filesystem.poke(path, b"")
    manager = disk.started(COMPACT)
    log = found(manager)
    (folder,) = log.set_aside
    end = log.log_end_offset
    manager.shutdown()
    for entry in disk.filesystem.list_directory(folder):
        disk.filesystem.rename(f"{folder}/{entry.name}", f"{log.directory}/{entry.name}")
    for _ in range(2):
        manager = disk.started(COMPACT)
        log = found(manager)
        assert log.log_end_offset == 20 > end
        assert manager.directories[0].checkpointed(CLEANER_CHECKPOINT, A0)
        killed(disk)


# -- segments that are filled up -----------------------------------------------------------------


def test_a_segment_that_is_filled_up_with_a_gap_has_been_flushed() -> None:
    """Its other replica was compacted: after a power cut the gap would seem one of ours."""
    disk = Disk()
    manager = disk.started(COMPACT)
    log = manager.creation.get_or_create(A0, ID_A, COMPACT)
    append(log, 2, value=b"v" * 40)
    active = log.segments.active
    file = active.open_file()
    file.truncate(active.size // 2)
    file.is_short = True
    with pytest.raises(CutSegmentError):
        read_batches(log)
    append(log, 6, value=b"v" * 40)
    for is_flushed in (False, True):
        if is_flushed:
            log.flusher.flush()
        with pytest.raises(CutSegmentError) as caught:
            read_batches(log)
        fill = manager.cut_segments.begin(log, caught.value)
        assert fill is not None
        assert fill.add(at(fill.end_offset))
        if is_flushed:
            fill.put()
        else:
            with pytest.raises(CleaningAbortedError, match="has not been flushed"):
                fill.put()
        fill.close()
    killed(disk)
    log = found(disk.started(COMPACT))
    assert log.log_end_offset == 8
    assert [one.offset for one in read_records(log)] == [0, *range(2, 8)]


# -- all of it -----------------------------------------------------------------------------------
