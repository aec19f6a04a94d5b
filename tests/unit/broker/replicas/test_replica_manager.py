"""The partitions here: found, missing, removed; woken; written by coordinators."""

import errno
import logging
from posixpath import dirname
from typing import Any

import pytest

from broker.controller.images.partition_image import PartitionImage
from broker.replicas.delayed_produce import DelayedCommit
from broker.replicas.purgatory import DelayedOperation
from broker.replicas.replica_manager import INTERNAL_APPEND_TIMEOUT_MS
from config.topic import TopicConfig
from protocol.error_codes import ErrorCode
from protocol.records.batch import read_header
from storage.errors import DiskError, OffsetOutOfRangeError, StorageError
from storage.log.log import Log
from storage.types.topic_partition import TopicPartition
from tests.code_path import python_only
from tests.unit.broker.world import NODE_ID, World, batch, lead, topic_id

T0 = TopicPartition("t", 0)

NOW_MS = 1_700_000_000_000


class Told(list[tuple[ErrorCode, int]]):
    def __call__(self, code: ErrorCode, offset: int) -> None:
        self.append((code, offset))


class Looking(DelayedOperation):
    """Counts how often it is asked to look again."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.ends: list[bool] = []

    def try_complete(self) -> bool:
        self.looks += 1
        return False

    def on_complete(self, *, expired: bool) -> None:
        self.ends.append(expired)


async def test_partitions_are_found_by_topic_and_index(world: World) -> None:
    """In any order of coming; indexes that nobody has are not there."""
    second, first = world.add("t", 2), world.add("t", 0)
    find = world.replicas.replica_of
    assert find("t", 0) is first
    assert find("t", 2) is second
    assert [find("t", index) for index in (-1, 1, 3)] == [None] * 3
    assert find("other", 0) is None
    assert list(world.replicas.partitions()) == [first, second]
    assert world.replicas.partition_count == 2
    assert world.replicas.names_by_id == {topic_id("t").bytes: "t"}


async def test_who_stops_leading_keeps_the_replica(world: World) -> None:
    """Handlers then find nothing; what works on the log goes on."""
    led, other = world.add("t", 1), world.add("t", 0)
    replicas = world.replicas
    assert replicas.leader_of("t", 1) is led
    assert [replicas.leader_of("t", index) for index in (-1, 2)] == [None, None]
    assert replicas.leader_of("other", 0) is None
    replicas.stop_leading(led)
    assert replicas.leader_of("t", 1) is None
    assert replicas.replica_of("t", 1) is led
    assert replicas.leader_of("t", 0) is other
    replicas.lead(led)
    assert replicas.leader_of("t", 1) is led


async def test_a_late_resignation_leaves_the_next_replica(world: World) -> None:
    """The same partition was opened anew meanwhile."""
    before = world.add("t")
    now = world.replicas.open_partition(T0, topic_id("t"), before.log)
    lead(world.replicas, now, 1)
    world.replicas.stop_leading(before)
    assert world.replicas.leader_of("t", 0) is now


async def test_what_is_removed_is_not_led(world: World) -> None:
    removed = world.add("t", 0)
    world.add("t", 1)
    world.replicas.remove_partition(removed, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert world.replicas.leader_of("t", 0) is None
    world.replicas.remove_topic("t")
    assert world.replicas.leader_of("t", 1) is None


async def test_everything_in_an_opened_log_is_committed(world: World) -> None:
    """One replica: a checkpoint that lags behind must not hide records."""
    partition = world.add("t")
    partition.append(memoryview(batch(b"a", b"b")), NOW_MS)
    log = partition.log
    log.high_watermark = 0
    again = world.replicas.open_partition(T0, topic_id("t"), log)
    assert not again.is_committed(2)
    lead(world.replicas, again)
    assert again.is_committed(2)


async def test_missing_partitions_that_exist_are_worth_a_retry(world: World) -> None:
    world.replicas.is_known = lambda topic, index: (topic, index) == ("t", 1)
    assert world.replicas.missing_error("t", 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.replicas.missing_error("t", 2) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_replica_that_does_not_lead_compares_epochs_first(world: World) -> None:
    """Who knows less is fenced; who knows more learns that this broker is behind, as in Kafka."""
    world.replicas.is_known = lambda topic, index: topic == "t"
    partition = world.add("t")
    world.replicas.stop_leading(partition)
    partition.leader_epoch = 5
    found = {epoch: world.replicas.missing_error("t", 0, epoch) for epoch in (-1, 4, 5, 6)}
    assert found == {
        -1: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        4: ErrorCode.FENCED_LEADER_EPOCH,
        5: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        6: ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
    # No replica: nothing to compare with.
    assert world.replicas.missing_error("t", 1, 6) is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_topics_that_are_not_served_yet_have_a_name(world: World) -> None:
    """Their logs are being recovered."""
    world.add("t")
    unserved, absent = topic_id("unserved").bytes, topic_id("absent").bytes
    world.replicas.known_name = {unserved: "unserved"}.get
    assert world.replicas.topic_name(topic_id("t").bytes) == "t"
    assert world.replicas.topic_name(unserved) == "unserved"
    assert world.replicas.topic_name(absent) is None


async def test_a_removed_topic_leaves_nothing(world: World) -> None:
    """Who waits looks again, and finds it gone already; other topics stay."""
    one, two, other = world.add("t", 0), world.add("t", 1), world.add("other")
    seen: list[object] = []

    class Wait(Looking):
        def try_complete(self) -> bool:
            seen.append(world.replicas.replica_of("t", 1))
            return True

    two.watch_fetch().add(Wait())
    assert world.replicas.remove_topic("t") == [one, two]
    assert seen == [None]
    assert world.replicas.names_by_id == {topic_id("other").bytes: "other"}
    assert set(world.replicas.stats) == {"other"}
    assert list(world.replicas.partitions()) == [other]
    assert world.replicas.remove_topic("t") == []


async def test_an_id_is_forgotten_with_the_last_partition_that_is_here(world: World) -> None:
    """All its replicas went elsewhere, or with a disk; then it is deleted and created again."""
    one, two = world.add("t", 0), world.add("t", 1)
    world.replicas.remove_partition(one, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert world.replicas.topic_name(topic_id("t").bytes) == "t"
    world.replicas.remove_partition(two, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert world.replicas.remove_topic("t") == []
    again = world.replicas.open_partition(T0, topic_id("again"), one.log)
    lead(world.replicas, again)
    assert world.replicas.topic_name(topic_id("t").bytes) is None
    assert world.replicas.topic_name(topic_id("again").bytes) == "t"


async def test_a_failed_directory_takes_its_partitions_only(world: World) -> None:
    """The topic goes on with the others, and is still known by its id."""
    failed, kept = world.add("t", 0), world.add("t", 1)
    told = Told()
    failed.waits(acks_all=True).add(1, DelayedCommit(0, told), None)
    world.replicas.remove_partition(failed, ErrorCode.KAFKA_STORAGE_ERROR)
    assert failed.gone is ErrorCode.KAFKA_STORAGE_ERROR
    assert told == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)]
    assert world.replicas.replica_of("t", 0) is None
    assert world.replicas.replica_of("t", 1) is kept
    assert world.replicas.names_by_id[topic_id("t").bytes] == "t"


async def test_waiting_fetches_are_woken_in_the_next_turn(world: World) -> None:
    """The producer gets its answer first; a burst wakes once; and again for the next burst."""
    first, second = world.add("t", 0), world.add("t", 1)
    waits = [Looking(), Looking()]
    first.watch_fetch().add(waits[0])
    second.watch_fetch().add(waits[1])
    for _ in range(3):
        first.append(memoryview(batch(b"v")), NOW_MS)
    assert waits[0].looks == 0
    await world.until(lambda: waits[0].looks == 1)
    assert waits[1].looks == 0
    first.append(memoryview(batch(b"v")), NOW_MS)
    second.append(memoryview(batch(b"v")), NOW_MS)
    await world.until(lambda: (waits[0].looks, waits[1].looks) == (2, 1))


async def test_fetches_do_not_wait_when_the_broker_stops(world: World) -> None:
    """Writes do: their flush is under way."""
    partition = world.add("t")
    fetch, told = Looking(), Told()
    partition.watch_fetch().add(fetch)
    partition.waits(acks_all=True).add(1, DelayedCommit(0, told), None)
    world.replicas.answer_parked()
    assert (fetch.ends, told) == ([True], [])


async def test_coordinators_write_and_are_told_at_once(world: World) -> None:
    """Several records a batch: the offset of the first."""
    world.add("t")
    told = Told()
    world.replicas.append_internal(T0, batch(b"a", b"b"), told)
    world.replicas.append_internal(T0, batch(b"c"), told)
    assert told == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 2)]


async def test_coordinators_wait_for_the_disk_as_others_do(world: World) -> None:
    """`flush.messages` on the offsets topic."""
    world.add("t", config=TopicConfig(flush_messages=1))
    told = Told()
    world.replicas.append_internal(T0, batch(b"a"), told)
    assert told == []
    assert world.replicas.delayed_produce.parked == 1
    await world.until(lambda: bool(told))
    assert told == [(ErrorCode.NONE, 0)]
    assert world.replicas.delayed_produce.parked == 0


async def test_coordinators_do_not_wait_forever(world: World) -> None:
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    partition.commit.flushing = True
    told = Told()
    world.replicas.append_internal(T0, batch(b"a"), told)
    world.timer.advance(INTERNAL_APPEND_TIMEOUT_MS - 1)
    assert told == []
    world.timer.advance(1)
    assert told == [(ErrorCode.REQUEST_TIMED_OUT, -1)]


async def test_a_full_purgatory_is_a_timeout(world: World) -> None:
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    partition.commit.flushing = True
    world.replicas.delayed_produce.capacity = 0
    told = Told()
    world.replicas.append_internal(T0, batch(b"a"), told)
    assert told == [(ErrorCode.REQUEST_TIMED_OUT, -1)]


async def test_coordinators_are_told_why_not(world: World) -> None:
    told = Told()
    world.replicas.append_internal(T0, batch(b"a"), told)
    world.add("t", config=TopicConfig(max_message_bytes=100))
    world.replicas.append_internal(T0, batch(b"x" * 200), told)
    assert told == [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
        (ErrorCode.MESSAGE_TOO_LARGE, -1),
    ]


async def test_a_refusing_disk_is_reported_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """One log line, the log out of service; whoever owns the directories is told each time."""
    partition = world.add("t")
    reported: list[Any] = []
    world.replicas.on_disk_failure = lambda log, error: reported.append((log, error))
    error = DiskError("cannot write", "/data/t-0")
    with caplog.at_level(logging.ERROR):
        world.replicas.disk_failed(partition, error)
        world.replicas.disk_failed(partition, error)
    assert len(caplog.messages) == 1
    assert "/data/t-0" in caplog.messages[0]
    assert reported == [(partition.log, error)] * 2
    told = Told()
    world.replicas.append_internal(T0, batch(b"a"), told)
    assert told == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)]


async def test_coordinators_read_what_is_committed(world: World) -> None:
    partition = world.add("t")
    for value in (b"a", b"b", b"c"):
        partition.append(memoryview(batch(value)), NOW_MS)
    size = len(batch(b"a"))
    read = world.replicas.read_internal
    assert len(await read(T0, 0, 1 << 20)) == 3 * size
    assert len(await read(T0, 0, 1)) == size, "the first batch whole, however small the limit"
    assert read_header(await read(T0, 1, size)).base_offset == 1
    partition.log.high_watermark = 2
    assert len(await read(T0, 0, 1 << 20)) == 2 * size
    assert len(await read(T0, 2, 1 << 20)) == 0
    with pytest.raises(OffsetOutOfRangeError):
        await read(T0, 4, 1 << 20)
    with pytest.raises(KeyError):
        await read(TopicPartition("absent", 0), 0, 1)


@pytest.mark.parametrize(
    ("code", "is_replicated", "fails"),
    [(errno.EIO, True, True), (errno.EIO, False, False), (errno.EMFILE, True, False)],
)
async def test_a_slice_that_cannot_be_read_is_a_failure_of_its_log(
    world: World, code: int, is_replicated: bool, fails: bool
) -> None:
    """Whoever asks for it would be cut off each time, with the records of sound disks beside it.

    Not where nobody else has anything: then all would be lost for one bad block.
    """
    first, second = world.add("t", 0), world.add("t", 1)
    if is_replicated:
        second.become_leader(
            PartitionImage(1, NODE_ID, 1, 0, (NODE_ID, 2), (NODE_ID, 2)), now_ms=0.0
        )
    failed: list[Log] = []
    world.replicas.on_disk_failure = lambda log, _error: failed.append(log)
    path = f"{second.log.directory}/00000000000000000000.log"
    told: list[StorageError | None] = []

    def read() -> None:
        raise DiskError("cannot read", path, code)

    world.replicas.read_slice(
        dirname(second.log.directory), read, lambda _result, error: told.append(error)
    )
    await world.until(lambda: bool(told))
    assert isinstance(told[0], DiskError)
    assert failed == ([second.log] if fails else [])
    assert (second.log.failure is not None) is fails
    assert first.log.failure is None


@python_only
@pytest.mark.parametrize(
    ("code", "is_replicated", "fails"),
    [(errno.EIO, True, True), (errno.EIO, False, False), (errno.EMFILE, True, False)],
)
async def test_a_coordinators_log_that_cannot_be_read_has_failed(
    world: World, monkeypatch: pytest.MonkeyPatch, code: int, is_replicated: bool, fails: bool
) -> None:
    """Another replica can be read, and its broker be the coordinator."""
    partition = world.add("t")
    partition.append(memoryview(batch(b"a")), NOW_MS)
    partition.log.high_watermark = 1
    if is_replicated:
        partition.become_leader(
            PartitionImage(0, NODE_ID, 1, 0, (NODE_ID, 2), (NODE_ID, 2)), now_ms=0.0
        )
    failed: list[Log] = []
    world.replicas.on_disk_failure = lambda log, _error: failed.append(log)

    def refused(*_: object) -> bytes:
        raise DiskError("cannot read", f"{partition.log.directory}/00000000000000000000.log", code)

    monkeypatch.setattr("storage.environment.local_filesystem.LocalFile.read_at", refused)
    with pytest.raises(DiskError):
        await world.replicas.read_internal(T0, 0, 1 << 20)
    assert failed == ([partition.log] if fails else [])
    assert (partition.log.failure is not None) is fails


@python_only
@pytest.mark.parametrize(
    ("code", "told", "serves"),
    [
        (errno.ENOSPC, ErrorCode.NOT_ENOUGH_REPLICAS, True),
        (errno.EDQUOT, ErrorCode.NOT_ENOUGH_REPLICAS, True),
        (errno.EMFILE, ErrorCode.NOT_ENOUGH_REPLICAS, True),
        (errno.EIO, ErrorCode.KAFKA_STORAGE_ERROR, False),
    ],
)
async def test_coordinators_are_told_whether_a_record_may_be_there(
    world: World, monkeypatch: pytest.MonkeyPatch, code: int, told: ErrorCode, serves: bool
) -> None:
    """What was undone is no reason to give up what they know; what may be there is."""
    partition = world.add("__transaction_state")
    failures: list[DiskError] = []
    world.replicas.on_disk_failure = lambda _log, error: failures.append(error)

    def refused(*_: object, **__: object) -> None:
        raise DiskError("cannot write", partition.log.directory, code)

    monkeypatch.setattr("storage.segment.segment.Segment.append", refused)
    outcomes: list[tuple[ErrorCode, int]] = []
    world.replicas.append_internal(
        partition.topic_partition, batch(b"v"), lambda *outcome: outcomes.append(outcome)
    )
    assert outcomes == [(told, -1)]
    assert len(failures) == 1
    assert (partition.log.failure is None) is serves
    monkeypatch.undo()
    world.replicas.append_internal(
        partition.topic_partition, batch(b"v"), lambda *outcome: outcomes.append(outcome)
    )
    assert outcomes[1] == ((ErrorCode.NONE, 0) if serves else (told, -1))
