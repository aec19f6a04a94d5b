"""A node made of a bucket has the same topics, and goes on where the bucket ends."""

from dataclasses import replace

import pytest

from broker.controller.controller import Controller
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import PRODUCER_IDS_KEY, decode_next_producer_id
from broker.remote.restore import (
    UNKNOWN_PRODUCER_IDS_START,
    RestoreRefusedError,
    RestoreResult,
    Restoring,
    check_empty,
)
from config.broker import BrokerConfig
from config.topic import TopicConfig
from protocol.records.batch import LOG_OVERHEAD, iterate_batches
from protocol.records.record import iterate_records
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.manager.log_manager import LogManager
from storage.producers.entry import ProducerEntry
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.tiered.manifest_bucket import CLUSTER, ManifestBucket, topic_id
from tiered.format.object_keys import ObjectKeys
from tiered.metadata.history import HistoryState, HistorySummary, PartitionHistory, encode_history
from tiered.metadata.partition_state import MetadataPartitionState
from tiered.metadata.partitioner import metadata_partition
from tiered.metadata.records import decode_event
from tiered.restore.restore import read_bucket
from tiered.segment_metadata import SegmentState, TopicIdPartition

SETTINGS = BrokerConfig().replace(
    node_id=3,
    remote_log_storage_system_enable=True,
    rlmm_config_remote_log_metadata_topic_num_partitions=4,
    num_partitions=7,
)
DIRS = ("/one", "/two")


class Node:
    """An empty node: two disks and a metadata store."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.filesystem = FakeFilesystem(self.clock)
        self.store = MemoryStore()

    async def restore(self, bucket: ManifestBucket, *, allow_gaps: bool = False) -> RestoreResult:
        content = await read_bucket(bucket, allow_gaps=allow_gaps)
        restoring = Restoring(
            SETTINGS,
            content,
            CLUSTER,
            log_dirs=DIRS,
            filesystem=self.filesystem,
            clock=self.clock,
            randomness=SeededRandomness(1),
        )
        return await restoring.run(self.store)

    async def image(self) -> ClusterImage:
        """What a broker that starts now finds."""
        store = MemoryStore(disk=self.store.disk)
        controller = await Controller.open(store, SETTINGS, randomness=SeededRandomness(2))
        return controller.image

    async def logs(self) -> LogManager:
        """Opened as a broker opens them."""
        image = await self.image()
        manager = LogManager(
            FakeEnvironment(
                filesystem=self.filesystem, clock=self.clock, randomness=SeededRandomness(3)
            ),
            DIRS,
        )
        manager.startup.open_directories()
        manager.startup.claim(image.cluster_id, SETTINGS.node_id)
        assert all(directory.meta is not None for directory in manager.directories)
        manager.startup.load(
            lambda topic: TopicConfig.resolve(SETTINGS, image.topics[topic].overrides),
            is_stray=lambda where, found: found != image.topics[where.topic].topic_id,
        )
        assert manager.stray == []
        return manager


def log_of(logs: LogManager, topic: str, partition: int = 0) -> Log:
    log = logs.get(TopicPartition(topic, partition))
    assert log is not None
    return log


async def test_topics_come_back_as_they_were() -> None:
    """Same ids, counts and settings; a leader epoch nobody has seen."""
    node, bucket = Node(), ManifestBucket()
    bucket.add("a", 1, 0, 9, partitions=3, epochs=[(4, 0)], history=[(4, 0)])
    bucket.add("b", 0, 0, 9, overrides={"retention.ms": "5", "no.such": "1"})
    result = await node.restore(bucket)
    assert (result.topics, result.partitions, result.segments) == (2, 2, 2)
    assert (result.size_bytes, result.aborted_transactions) == (2000, 0)
    assert result.problems == ["topic b: Unknown topic config name: no.such"]
    image = await node.image()
    assert image.cluster_id == CLUSTER
    assert sorted(image.topics) == ["__remote_log_metadata", "a", "b"]
    found = image.topics["a"]
    assert found.topic_id == topic_id("a")
    assert [(p.leader, p.leader_epoch, p.isr) for p in found.partitions] == [
        (3, 0, (3,)),
        (3, 5, (3,)),
        (3, 0, (3,)),
    ]
    assert found.overrides == {"remote.storage.enable": "true", "local.retention.ms": "1000"}
    # It was being taken out of remote storage, where all of it is.
    assert image.topics["b"].overrides == {"retention.ms": "5", "remote.storage.enable": "true"}


async def test_logs_begin_where_the_bucket_ends() -> None:
    """Spread over the directories, stopped cleanly; the next record is of the new epoch."""
    node, bucket = Node(), ManifestBucket()
    bucket.add("a", 0, 0, 9)
    bucket.add("a", 0, 10, 19, epochs=[(2, 10)])
    bucket.add("a", 1, 5, 6)
    await node.restore(bucket)
    logs = await node.logs()
    assert all(directory.had_clean_shutdown for directory in logs.directories)
    assert {len(logs.logs_in(directory)) for directory in logs.directories} == {3}
    log = log_of(logs, "a")
    assert (log.log_start_offset, log.local_log_start_offset) == (0, 20)
    assert (log.log_end_offset, log.high_watermark) == (20, 20)
    assert list(log.leader_epochs.entries()) == [(0, 0), (2, 10), (3, 20)]
    assert log_of(logs, "a", 1).log_start_offset == 5
    assert log_of(logs, "a", 1).log_end_offset == 7


async def test_a_log_of_which_all_has_expired_goes_on_where_it_ended() -> None:
    """With the epoch of a leader that its history does not refuse."""
    node, bucket = Node(), ManifestBucket()
    bucket.add("a", 0, 0, 9, partitions=2)
    whose = TopicIdPartition(topic_id("a"), "a", 1)
    summary = HistorySummary(whose, CLUSTER, 2, HistoryState.LIVE, 6, 5, 50, 50, 50, ())
    key = ObjectKeys().history_key(whose)
    bucket.objects[key] = encode_history(PartitionHistory(summary, ()))
    result = await node.restore(bucket)
    assert (result.partitions, result.segments, result.problems) == (2, 1, [])
    log = log_of(await node.logs(), "a", 1)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (50, 50, 50)
    assert list(log.leader_epochs.entries()) == [(7, 50)]
    assert [one.leader_epoch for one in (await node.image()).topics["a"].partitions] == [1, 7]


async def test_gaps_are_left_out_or_kept() -> None:
    """As asked."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    bucket.add("a", 0, 20, 29)
    node = Node()
    result = await node.restore(bucket)
    assert result.problems == ["a-0: offsets 10 to 19 are missing"]
    assert result.segments == 1
    assert log_of(await node.logs(), "a").log_start_offset == 20
    whole = Node()
    assert (await whole.restore(bucket, allow_gaps=True)).segments == 2
    assert log_of(await whole.logs(), "a").log_start_offset == 0


async def test_what_was_open_is_aborted() -> None:
    """With the first records of the new leader."""
    node, bucket = Node(), ManifestBucket()
    entry = ProducerEntry(9, 3, last_timestamp=node.clock.now_ms(), txn_first_offset=4)
    bucket.add("a", 0, 0, 9, producers=[entry])
    assert (await node.restore(bucket)).aborted_transactions == 1
    log = log_of(await node.logs(), "a")
    assert (log.log_end_offset, log.last_stable_offset) == (11, 11)
    assert list(log.reader.aborted_transactions(10, 11)) == [(9, 4)]


@pytest.mark.parametrize(
    ("highest", "following"),
    [(5, UNKNOWN_PRODUCER_IDS_START), (1 << 40, (1 << 40) + 1)],
)
async def test_no_producer_id_is_given_out_twice(highest: int, following: int) -> None:
    """Above those in the bucket, and above those nobody can know of."""
    node, bucket = Node(), ManifestBucket()
    bucket.add("a", 0, 0, 9, producers=[ProducerEntry(highest, 0)])
    await node.restore(bucket)
    (item,) = (await MemoryStore(disk=node.store.disk).range(PRODUCER_IDS_KEY)).items
    assert decode_next_producer_id(item.value) == following


async def test_the_remote_logs_topic_tells_of_every_segment() -> None:
    """Begun and finished, in the partition where a broker looks; on disk."""
    node, bucket = Node(), ManifestBucket()
    told = [bucket.add("a", 0, n * 10, n * 10 + 9) for n in range(130)]
    other = bucket.add("b", 1, 0, 9)
    await node.restore(bucket)
    image = await node.image()
    topic = image.topics["__remote_log_metadata"]
    assert len(topic.partitions) == 4
    assert topic.overrides["flush.messages"] == "1"
    logs = await node.logs()
    states = {}
    for partition in range(4):
        log = log_of(logs, "__remote_log_metadata", partition)
        assert log.high_watermark == log.log_end_offset
        state = states[partition] = MetadataPartitionState(partition)
        for value in values_of(node.filesystem, log):
            state.apply(decode_event(value))
    for metadata in (*told, other):
        at = metadata_partition(metadata.partition, 4)
        user = states[at].user((metadata.partition.topic_id.bytes, metadata.partition.partition))
        assert user is not None
        found = user.cache.segment(metadata.id)
        assert found is not None
        assert found.state is SegmentState.COPY_SEGMENT_FINISHED
        assert (found.broker_id, found.custom_metadata) == (3, b"c")
        assert replace(
            found, broker_id=1, event_timestamp_ms=metadata.event_timestamp_ms
        ) == replace(metadata, state=SegmentState.COPY_SEGMENT_FINISHED)


def values_of(filesystem: FakeFilesystem, log: Log) -> list[bytes]:
    """Of all records in a log."""
    values = []
    for segment in log.segment_facts():
        view = memoryview(filesystem.read_bytes(segment.path))
        for position, header in iterate_batches(view):
            end = position + LOG_OVERHEAD + header.batch_length
            for record in iterate_records(view[position:end], max_size=1 << 20):
                assert record.value is not None
                values.append(bytes(record.value))
    return values


async def test_only_an_empty_node_is_restored_onto() -> None:
    """A second run finds what the first has made."""
    node, bucket = Node(), ManifestBucket()
    check_empty(node.filesystem, DIRS)
    node.filesystem.mkdir("/one")
    node.filesystem.mkdir("/one/lost+found")
    check_empty(node.filesystem, DIRS)
    bucket.add("a", 0, 0, 9)
    await node.restore(bucket)
    with pytest.raises(RestoreRefusedError, match=r"/one is not empty \(it has "):
        check_empty(node.filesystem, DIRS)
