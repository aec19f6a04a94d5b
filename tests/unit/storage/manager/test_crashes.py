"""Starts after a kill and after a power cut: what was promised holds."""

from random import Random
from uuid import UUID

import pytest

from protocol.records.builder import build_batch
from storage.log.log import Log
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL
from tests.effort import drawn, swept
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import KEEP_ALL, Event, FakeFilesystem
from tests.unit.storage.log.log_model import read_records, small_segments
from tests.unit.storage.manager.log_disk import A0, A1, B0, CONFIG, ID_A, Disk, append, killed


def test_crash_at_every_step_keeps_what_was_flushed() -> None:
    """Topics come, are written to, flushed, cut, deleted and made again; the power goes anywhere.

    After each change of the disk, whatever of the unsynced survived: the next start succeeds, has
    every flushed record that was not deleted, and takes no offset from a topic of the same name.
    """
    points = 0
    for seed in swept(range(3), 3):
        disk = Disk("/one", "/two")
        disk.filesystem.mkdir("/one")
        disk.filesystem.mkdir("/two")
        disk.filesystem.sync_directory("/")
        rng = Random(seed)
        # (topic id, offsets below which everything was flushed, log start, records written)
        flushed: dict[TopicPartition, tuple[UUID, int, int, int]] = {}

        def observe(
            _event: object,
            disk: Disk = disk,
            flushed: dict[TopicPartition, tuple[UUID, int, int, int]] = flushed,
        ) -> None:
            nonlocal points
            for keep in (None, "all", Random(points)):
                points += 1
                after = Disk(*disk.directories)
                after.clock = disk.clock
                after.filesystem = disk.filesystem.after_crash(keep)
                manager = after.started()
                assert manager.offline_directories == []
                for tp, (topic_id, end, start, written) in flushed.items():
                    log = manager.get(tp)
                    if log is None:
                        assert end == 0
                        continue
                    if log.topic_id not in (topic_id, NIL):
                        continue  # being deleted, or not made yet
                    assert end <= log.log_end_offset <= written
                    assert log.log_start_offset <= start
                    if log.log_start_offset < log.log_end_offset:
                        start_of_epoch = log.leader_epochs.earliest_entry
                        assert start_of_epoch == (0, log.log_start_offset)

        disk.filesystem.observer = observe
        manager = disk.started()
        incarnation = 0
        for _ in range(40):
            tp = rng.choice([A0, A1, B0])
            log = manager.get(tp)
            act = rng.choice(["append", "append", "flush", "cut", "delete", "checkpoint"])
            if log is None:
                incarnation += 1
                topic_id = UUID(int=incarnation << 64)
                flushed[tp] = (topic_id, 0, 0, 0)
                manager.creation.get_or_create(tp, topic_id, CONFIG)
                continue
            topic_id, end, start, written = flushed[tp]
            if act == "append":
                flushed[tp] = (topic_id, end, start, written + 2)
                append(log, 2)
            elif act == "flush":
                log.flusher.flush()
                flushed[tp] = (topic_id, log.log_end_offset, start, written)
            elif act == "cut":
                flushed[tp] = (topic_id, end, log.high_watermark, written)
                log.delete_records(log.high_watermark)
            elif act == "delete":
                flushed[tp] = (topic_id, 0, start, written)
                manager.deletion.delete(tp)
                del flushed[tp]
            else:
                manager.checkpoints.write()
        disk.filesystem.observer = None
    assert points > drawn(1_500, 4)


def test_a_log_that_ends_below_its_recovery_point_is_looked_at_from_its_end_on() -> None:
    """Also by the start after the next: what it has written since is not on disk."""
    config = small_segments(300)
    disk = Disk()
    manager = disk.started(config)
    log = manager.creation.get_or_create(A0, ID_A, config)
    append(log, 20)
    log.flusher.flush()
    manager.checkpoints.write()
    # The power goes in a truncation, before the checkpoint has been written.
    log.truncation.truncate_to(5)
    disk.filesystem.crash()
    found = disk.started(config).get(A0)
    assert found is not None
    assert found.log_end_offset == 5
    append(found, 10)
    assert found.segments.active.base_offset > 8
    # As with any file that is replaced there.
    disk.filesystem.sync_directory(found.directory)
    disk.filesystem.crash()
    found = disk.started(config).get(A0)
    assert found is not None
    assert found.log_end_offset == 5
    assert [record.offset for record in read_records(found)] == list(range(5))


@pytest.mark.parametrize("flush_messages", [1, 7, 1000, (1 << 63) - 1])
def test_what_flush_messages_promises_holds_before_a_log_serves(flush_messages: int) -> None:
    """All that will be shown is on disk: nobody knows how much of it was acknowledged as such."""
    disk = Disk()
    config = small_segments(300, flush_messages=flush_messages)
    first = disk.started(config)
    append(first.creation.get_or_create(A0, ID_A, config), 20)
    disk.filesystem.sync_directory("/")
    for directory in first.directories:
        assert directory._lock is not None
        directory._lock.release()
    seen: list[tuple[int, int]] = []
    manager = disk.manager()

    def serve(log: Log) -> None:
        after_a_power_cut = Log.open(
            "/one/a-0",
            A0,
            topic_id=ID_A,
            config=config,
            environment=FakeEnvironment(filesystem=disk.filesystem.after_crash(), clock=disk.clock),
        )
        seen.append((log.recovery_point, after_a_power_cut.log_end_offset))

    manager.startup.load(lambda _topic: config, on_loaded=serve)
    is_limited = flush_messages < 1 << 62
    assert seen == [(20, 20) if is_limited else (0, 0)]


def test_an_epoch_of_an_unclean_start_is_known_after_a_power_cut_at_any_moment() -> None:
    """Whether its checkpoint was on disk or not: then by its batches."""
    disk = Disk()
    log = disk.started().creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 3)
    log.flusher.flush()
    disk.filesystem.sync_directory("/")
    killed(disk)
    disks: list[FakeFilesystem] = []

    def observe(event: Event) -> None:
        disks.extend(
            disk.filesystem.after_crash(keep) for keep in (None, KEEP_ALL, Random(event.number))
        )

    disk.filesystem.observer = observe
    manager = disk.manager()
    for job in manager.startup.load_jobs(lambda _topic: CONFIG, new_epoch_of=lambda _tp: 4):
        job()
    found = manager.get(A0)
    assert found is not None
    assert found.leader_epochs.entries() == [(0, 0), (4, 3)]
    for _ in range(3):
        batch = build_batch([(b"k", b"v", (), 1_700_000_000_000)])
        found.writer.append_as_leader(memoryview(batch), leader_epoch=4, now_ms=1_700_000_000_000)
    found.flusher.flush()
    manager.checkpoints.write_recovery_points()
    assert len(disks) > 10
    ends = set()
    for each in disks:
        disk.filesystem = each
        again = disk.manager()
        for job in again.startup.load_jobs(lambda _topic: CONFIG, new_epoch_of=lambda _tp: 5):
            job()
        log_again = again.get(A0)
        assert log_again is not None
        end = log_again.log_end_offset
        ends.add(end)
        expected = [(0, 0), (5, 3)] if end == 3 else [(0, 0), (4, 3), (5, end)]
        assert log_again.leader_epochs.entries() == expected
    assert ends == {3, 4, 5, 6}


def test_an_epoch_that_the_cluster_has_begun_is_read_from_batches() -> None:
    """A leader notes its epoch in memory, and the next flush writes it: kill -9 may come before.

    A follower that did not know the epoch of its last records would have them truncated.
    """
    disk = Disk()
    log = disk.started().creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 3)
    log.begin_to_lead(2)
    for _ in range(2):
        batch = build_batch([(b"k", b"v", (), 1_700_000_000_000)])
        log.writer.append_as_leader(memoryview(batch), leader_epoch=2, now_ms=1_700_000_000_000)
    assert disk.filesystem.peek(f"{log.directory}/leader-epoch-checkpoint") == b"0\n1\n0 0\n"
    disk.filesystem = disk.filesystem.after_crash(KEEP_ALL)
    for latest_epoch, expected in ((2, [(0, 0), (2, 3)]), (1, [(0, 0)])):
        killed = disk.filesystem
        disk.filesystem = killed.after_crash(KEEP_ALL)
        manager = disk.manager()
        for job in manager.startup.load_jobs(
            lambda _topic: CONFIG,
            latest_epoch_of=lambda _tp, latest_epoch=latest_epoch: latest_epoch,  # type: ignore[misc]  # bound now
        ):
            job()
        found = manager.get(A0)
        assert found is not None
        assert found.log_end_offset == 5
        assert found.leader_epochs.entries() == expected
        disk.filesystem = killed


def test_an_epoch_that_no_cluster_has_begun_is_not_learnt(disk: Disk) -> None:
    """No sum covers a batch's leader epoch: too late a one, or one before an earlier, is noise."""
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 4)
    path = log.segment_facts()[0].path
    data = bytearray(disk.filesystem.peek(path))
    size = len(data) // 4
    data[size + 12 : size + 16] = (2).to_bytes(4, "big")
    data[3 * size + 12 : 3 * size + 16] = (9).to_bytes(4, "big")
    disk.filesystem.poke(path, bytes(data))
    killed(disk)
    manager = disk.manager()
    for job in manager.startup.load_jobs(lambda _topic: CONFIG, new_epoch_of=lambda _tp: 5):
        job()
    found = manager.get(A0)
    assert found is not None
    assert found.leader_epochs.entries() == [(0, 0), (5, 4)]


def test_epochs_begun_with_a_start_cost_no_sync(disk: Disk) -> None:
    """Thousands of partitions begin one at the same time."""
    manager = disk.started()
    for index in range(20):
        append(manager.creation.get_or_create(TopicPartition("a", index), ID_A, CONFIG))
    killed(disk)
    manager = disk.manager()
    synced: list[str] = []
    disk.filesystem.observer = lambda event: (
        synced.append(event.path) if event.kind == "sync" and "epoch" in event.path else None
    )
    for job in manager.startup.load_jobs(lambda _topic: CONFIG, new_epoch_of=lambda _tp: 5):
        job()
    assert synced == []
    log = manager.get(A0)
    assert log is not None
    log.flusher.flush()
    assert synced == ["/one/a-0/leader-epoch-checkpoint"]
