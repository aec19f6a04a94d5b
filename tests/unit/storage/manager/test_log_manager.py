"""All logs of a broker."""

from collections.abc import Callable

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.manager.log_manager import LogManager
from tests.fakes.environment import FakeEnvironment
from tests.unit.storage.manager.log_disk import A0, B0, CONFIG, ID_A, ID_B, Disk, T, append_durably


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
