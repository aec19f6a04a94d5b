"""Restore of a node from a bucket (`varve tier restore`), while no broker runs.

    bucket ──read_bucket──> topics, ranges
      ─> the log directories are claimed for the cluster
      ─> metadata store: topics with their ids, partition counts and settings
      ─> of each partition an empty local log that begins at the end of the remote part
      ─> `__remote_log_metadata`: each segment's COPY_SEGMENT_STARTED and _FINISHED
      ─> the bucket's claim, and the marker of a clean stop last

The directories must be empty. A restore that was interrupted leaves them without the marker and
the next one refuses them: remove what is in them and begin again; the bucket is as it was.

Leaders begin with an epoch of their own: what the lost broker wrote after its last copy had offsets
that will be given out again, and a consumer that has seen it must notice (KIP-320).
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from broker.controller.images.metadata_records import (
    CLUSTER_ID_KEY,
    PRODUCER_IDS_KEY,
    ConfigResource,
    ResourceType,
    chunks,
    config_key,
    encode_config,
    encode_next_producer_id,
    encode_topic,
    topic_key,
)
from broker.controller.images.partition_image import PartitionImage
from broker.controller.images.topic_names import REMOTE_LOG_METADATA
from broker.controller.store.metadata_store import MetadataStore, Put, key_absent
from broker.controller.store.store_writer import StoreWriter, Unit
from broker.controller.topics.topics import REMOTE_LOG_METADATA_CONFIGS
from config.broker import BrokerConfig
from config.errors import InvalidConfigError
from config.topic import TopicConfig, validate_topic_overrides
from protocol.records.builder import build_batch
from storage.environment.clock import Clock
from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from storage.errors import CorruptFileError
from storage.log.truncation import StateBelow
from storage.manager.log_manager import LogManager, LogManagerSettings
from storage.producers.snapshot import decode_snapshot
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from tiered.metadata.partitioner import metadata_partition
from tiered.metadata.records import MetadataEvent, encode_event
from tiered.restore.open_transactions import abort_open_transactions
from tiered.restore.restore import BucketContent, RestoredTopic
from tiered.restore.restored_partition import RestoredPartition
from tiered.segment_metadata import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    SegmentState,
)
from tiered.tasks.follower import install_auxiliary_state

LOGGER = logging.getLogger(__name__)

RECORDS_PER_BATCH: Final = 200
"""Of metadata; some 200 bytes each."""

UNKNOWN_PRODUCER_IDS_START: Final = 1_000_000_000
"""Where producer ids begin at least: above what was given out, which is unknown."""

_FINDABLE_ANYWHERE: Final = frozenset({"lost+found"})


class RestoreRefusedError(Exception):
    """The node is not empty, or the bucket is another cluster's; nothing was done."""


@dataclass(slots=True)
class RestoreResult:
    """What was done.

    Attributes:
        topics, partitions, segments, size_bytes: Restored.
        aborted_transactions: That were open at the end of the remote part.
        problems: Sentences about what was left behind.
    """

    topics: int = 0
    partitions: int = 0
    segments: int = 0
    size_bytes: int = 0
    aborted_transactions: int = 0
    problems: list[str] = field(default_factory=list)


def check_empty(filesystem: Filesystem, log_dirs: Iterable[str]) -> None:
    """Refuse a node that holds anything.

    Raises:
        RestoreRefusedError: It does.
        DiskError: A directory cannot be read.
    """
    for log_dir in log_dirs:
        if not filesystem.exists(log_dir):
            continue
        names = {entry.name for entry in filesystem.list_directory(log_dir)} - _FINDABLE_ANYWHERE
        if names:
            raise RestoreRefusedError(
                f"{log_dir} is not empty (it has {min(names)}): a bucket is restored onto an "
                "empty node only"
            )


class Restoring:
    """Does it; see the module. `run` once."""

    def __init__(
        self,
        settings: BrokerConfig,
        content: BucketContent,
        cluster_id: str,
        *,
        log_dirs: Sequence[str],
        filesystem: Filesystem,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._settings = settings
        self._content = content
        self._cluster_id = cluster_id
        self._log_dirs = list(log_dirs)
        self._filesystem = filesystem
        self._clock = clock
        self._randomness = randomness
        self._metadata_topic_id = randomness.uuid4()
        self._log_manager = LogManager(
            Environment.without_loop(clock=clock, filesystem=filesystem, randomness=randomness),
            log_dirs,
            settings=LogManagerSettings.of(settings),
        )
        self.result = RestoreResult(problems=list(content.problems))
        self._overrides = {topic.name: self._kept(topic) for topic in content.topics.values()}

    async def run(self, store: MetadataStore) -> RestoreResult:
        """Fill the metadata store and the log directories, both empty.

        Raises:
            StoreError: The store refused.
            StorageError: A disk refused.
        """
        run = asyncio.to_thread
        await run(self._log_manager.startup.open_directories)
        await run(self._log_manager.startup.claim, self._cluster_id, self._settings.node_id)
        await self._fill_store(store)
        await run(self._make_logs)
        await run(self._publish)
        await run(self._log_manager.shutdown)
        return self.result

    # -- metadata store --------------------------------------------------------------------------

    async def _fill_store(self, store: MetadataStore) -> None:
        units = [
            Unit((key_absent(CLUSTER_ID_KEY),), (Put(CLUSTER_ID_KEY, self._cluster_id.encode()),))
        ]
        units += [self._unit(topic) for topic in self._content.topics.values()]
        units.append(self._metadata_unit())
        highest = max(self._producer_ids(), default=-1)
        next_id = max(highest + 1, UNKNOWN_PRODUCER_IDS_START)
        put = Put(PRODUCER_IDS_KEY, encode_next_producer_id(next_id))
        units.append(Unit((key_absent(PRODUCER_IDS_KEY),), (put,)))
        outcome = await StoreWriter(store).commit(units)
        for error in outcome.errors:
            if error is not None:
                raise error

    def _producer_ids(self) -> Iterable[int]:
        for topic in self._content.topics.values():
            for restored in topic.partitions.values():
                if restored.producer_snapshot:
                    try:
                        entries = decode_snapshot(restored.producer_snapshot, topic.name)
                    except CorruptFileError as error:
                        self.result.problems.append(str(error))
                        continue
                    yield from (entry.producer_id for entry in entries)

    def _unit(self, topic: RestoredTopic) -> Unit:
        count = max(topic.facts.partitions, max(topic.partitions, default=0) + 1)
        partitions = [
            self._partition_image(index, _leader_epoch(topic.partitions.get(index)))
            for index in range(count)
        ]
        return self._topic_unit(topic.name, topic.topic_id, partitions, self._overrides[topic.name])

    def _metadata_unit(self) -> Unit:
        partitions = [self._partition_image(index, 0) for index in range(self._metadata_partitions)]
        configs = REMOTE_LOG_METADATA_CONFIGS
        return self._topic_unit(REMOTE_LOG_METADATA, self._metadata_topic_id, partitions, configs)

    @property
    def _metadata_partitions(self) -> int:
        return self._settings.rlmm_config_remote_log_metadata_topic_num_partitions

    def _partition_image(self, index: int, leader_epoch: int) -> PartitionImage:
        node_id = self._settings.node_id
        return PartitionImage(
            index=index,
            leader=node_id,
            leader_epoch=leader_epoch,
            partition_epoch=0,
            replicas=(node_id,),
            isr=(node_id,),
        )

    @staticmethod
    def _topic_unit(
        name: str, topic_id: UUID, partitions: list[PartitionImage], configs: Mapping[str, str]
    ) -> Unit:
        puts = [Put(topic_key(name), encode_topic(topic_id))]
        puts += [Put(key, value) for key, value in chunks(topic_id, partitions)]
        if configs:
            resource = ConfigResource(ResourceType.TOPIC, name)
            puts.append(Put(config_key(resource), encode_config(configs)))
        return Unit(compare=(key_absent(topic_key(name)),), operations=tuple(puts))

    def _kept(self, topic: RestoredTopic) -> dict[str, str]:
        """The topic's settings; one this release refuses must not keep it from being restored."""
        kept: dict[str, str] = {}
        for key, text in topic.facts.overrides.items():
            try:
                validate_topic_overrides({key: text}, remote_storage_system_enabled=True)
            except InvalidConfigError as error:
                self.result.problems.append(f"topic {topic.name}: {error}")
                continue
            kept[key] = text
        # Its history is remote: a topic that was about to leave remote storage has it back.
        return kept | {"remote.storage.enable": "true"}

    # -- logs ------------------------------------------------------------------------------------

    def _make_logs(self) -> None:
        """Empty ones, each where its remote part ends, as a follower makes them."""
        self._log_manager.startup.load(lambda _topic: TopicConfig())
        now_ms = self._clock.now_ms()
        for topic in self._content.topics.values():
            self.result.topics += 1
            config = TopicConfig.resolve(self._settings, self._overrides[topic.name])
            wanted = [
                (TopicPartition(topic.name, index), topic.topic_id, config)
                for index in topic.partitions
            ]
            logs = self._log_manager.creation.create_all(wanted)
            for log, restored in zip(logs, topic.partitions.values(), strict=True):
                plan, epoch = restored.plan, _leader_epoch(restored)
                state = StateBelow(
                    plan.end_offset, list(plan.leader_epochs), restored.producer_snapshot
                )
                install_auxiliary_state(
                    log, state, log_start_offset=plan.log_start_offset, now_ms=now_ms
                )
                log.leader_epochs.assign(epoch, plan.end_offset)
                self.result.aborted_transactions += abort_open_transactions(
                    log, leader_epoch=epoch, now_ms=now_ms
                )
                self.result.partitions += 1
                self.result.segments += len(plan.segments)
                self.result.size_bytes += plan.size_bytes

    def _publish(self) -> None:
        """Write what `__remote_log_metadata` has to know."""
        config = TopicConfig.resolve(self._settings, REMOTE_LOG_METADATA_CONFIGS)
        logs = self._log_manager.creation.create_all(
            (TopicPartition(REMOTE_LOG_METADATA, index), self._metadata_topic_id, config)
            for index in range(self._metadata_partitions)
        )
        values: dict[int, list[bytes]] = {}
        for topic in self._content.topics.values():
            for restored in topic.partitions.values():
                at = metadata_partition(restored.plan.partition, self._metadata_partitions)
                for one in restored.plan.segments:
                    values.setdefault(at, []).extend(map(encode_event, self._events(one.metadata)))
        now_ms = self._clock.now_ms()
        for at, texts in values.items():
            for start in range(0, len(texts), RECORDS_PER_BATCH):
                part = texts[start : start + RECORDS_PER_BATCH]
                batch = build_batch([(None, value, (), now_ms) for value in part])
                logs[at].writer.append_as_leader(
                    memoryview(batch),
                    leader_epoch=0,
                    now_ms=now_ms,
                    origin=AppendOrigin.COORDINATOR,
                )
            logs[at].update_high_watermark(logs[at].log_end_offset)

    def _events(self, segment: RemoteLogSegmentMetadata) -> Sequence[MetadataEvent]:
        """As the copier publishes them: Kafka's reader refuses a segment that was never begun."""
        node_id, now_ms = self._settings.node_id, self._clock.now_ms()
        started = RemoteLogSegmentMetadata(
            segment_id=segment.segment_id,
            start_offset=segment.start_offset,
            end_offset=segment.end_offset,
            max_timestamp_ms=segment.max_timestamp_ms,
            broker_id=node_id,
            event_timestamp_ms=now_ms,
            segment_size_bytes=segment.segment_size_bytes,
            segment_leader_epochs=segment.segment_leader_epochs,
            state=SegmentState.COPY_SEGMENT_STARTED,
            custom_metadata=None,
            txn_index_empty=segment.txn_index_empty,
        )
        finished = RemoteLogSegmentMetadataUpdate(
            segment.segment_id,
            now_ms,
            SegmentState.COPY_SEGMENT_FINISHED,
            node_id,
            segment.custom_metadata,
        )
        return started, finished


def _leader_epoch(restored: RestoredPartition | None) -> int:
    """Of the leader from now on: above all epochs in the bucket.

    The lost broker may have led in later epochs than those of what it copied, and its histories say
    so: a leader of an earlier one would leave them as they are (`tiered.tasks.history_writer`).
    """
    if restored is None:
        return 0
    epochs = (epoch for epoch, _ in restored.plan.leader_epochs)
    return max(*epochs, restored.history_epoch, -1) + 1
