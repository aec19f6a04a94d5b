"""All logs of a broker."""

import errno
from collections.abc import Callable

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.checkpoints.checkpoint_files import CLEANER_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from storage.errors import DiskError
from storage.log.log import Log
from storage.manager.log_manager import LogManager
from tests.fakes.environment import FakeEnvironment
from tests.unit.storage.log.log_model import small_segments
from tests.unit.storage.manager.log_disk import (
    A0,
    B0,
    CONFIG,
    ID_A,
    ID_B,
    Disk,
    T,
    append,
    append_durably,
)


def test_expired_producers_are_forgotten(disk: Disk) -> None:
    """After `producer.id.expiration.ms`."""
    manager = disk.manager(producer_id_expiration_ms=5_000)
    manager.startup.load(lambda _topic: CONFIG)
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    now_ms = disk.clock.now_ms()
    batch = build_batch(
        [(None, b"v", (), now_ms)], producer_id=4, producer_epoch=0, base_sequence=0
    )
    log.writer.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=now_ms)
    found = []
    for ms in (4_999, 0, 1, 0):
        disk.clock.advance(ms)
        found.append(log.producer_state.remove_expired(disk.clock.now_ms()))
    assert found == [0, 0, 0, 1]


def written_and_flushed(disk: Disk, config: TopicConfig) -> tuple[LogManager, Log]:
    """A log whose checkpoint is one segment old."""
    manager = disk.started(config)
    log = manager.creation.get_or_create(A0, ID_A, config)
    append_durably(log, 2)
    manager.checkpoints.write()
    append(log, 20)
    return manager, log


def test_a_stop_without_room_for_the_recovery_points_is_no_clean_one(disk: Disk) -> None:
    """The log counted as one in which somebody has left gaps, and a power cut could leave some."""
    config = small_segments(300)
    manager, _ = written_and_flushed(disk, config)
    disk.filesystem.fail("create", errno.ENOSPC, path=RECOVERY_POINT_CHECKPOINT)
    manager.shutdown()
    manager = disk.started(config)
    (directory,) = manager.directories
    found = manager.get(A0)
    assert found is not None
    assert not directory.had_clean_shutdown
    assert (found.log_end_offset, found.gaps_until) == (22, None)
    assert directory.checkpointed(CLEANER_CHECKPOINT, A0) is None


def test_a_stop_with_a_log_that_is_out_of_service_is_no_clean_one(disk: Disk) -> None:
    """It was not flushed: a power cut would leave less than a clean stop vouches for."""
    config = small_segments(300)
    manager, log = written_and_flushed(disk, config)
    log.fail(DiskError("no descriptor", log.directory, errno.EMFILE))
    manager.shutdown()
    assert not disk.started(config).directories[0].had_clean_shutdown


def test_serving_logs_are_changed_by_their_owner_only(disk: Disk) -> None:
    """Flushing, retention, compaction, expiry and deletion hand their short steps over."""
    config = TopicConfig(
        cleanup_policy=("compact", "delete"),
        segment_bytes=300,
        min_cleanable_dirty_ratio=0.1,
    )
    inside = calls = 0

    def on_owner(act: Callable[[], T], /) -> T:
        nonlocal inside, calls
        calls += 1
        inside += 1
        try:
            return act()
        finally:
            inside -= 1

    manager = LogManager(
        FakeEnvironment(filesystem=disk.filesystem, clock=disk.clock),
        disk.directories,
        on_owner=on_owner,
    )
    manager.startup.open_directories()
    manager.startup.claim("cluster", 1)
    manager.startup.load(lambda _topic: config)
    log = manager.creation.get_or_create(A0, ID_A, config)
    append_durably(log, 40)
    batch = build_batch(
        [(b"k", b"v", (), 1_700_000_000_000)], producer_id=4, producer_epoch=0, base_sequence=0
    )
    log.writer.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=1_700_000_000_000)
    assert calls == 0
    assert manager.compaction.clean_dirtiest() is not None
    assert calls > 0
    before = calls
    manager.deletion.delete(A0)
    assert calls == before + 1
    assert inside == 0


def test_transactions_are_verified_or_not(disk: Disk) -> None:
    """In logs that are there, and in those to come."""
    manager = disk.started()
    first = manager.creation.get_or_create(A0, ID_A, CONFIG)
    assert not first.producer_state.requires_verification
    manager.require_verification(True)
    second = manager.creation.get_or_create(B0, ID_B, CONFIG)
    assert first.producer_state.requires_verification
    assert second.producer_state.requires_verification
