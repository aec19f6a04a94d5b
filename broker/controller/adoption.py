"""Taking over log directories that a released Kafka wrote.

The first start on directories with partitions, but without a metadata store of ours, fills the
store from what is there: topics with their ids from the partition directories, leader epochs from
their checkpoints, settings and producer ids from Kafka's metadata log where there is one. From then
on the store is the truth, as always.

Consumer groups need nothing: `__consumer_offsets` is a topic like the others, in Kafka's format.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from posixpath import join
from uuid import UUID

from broker.controller.kafka_metadata import KafkaMetadata, read_kafka_metadata
from broker.controller.metadata_records import (
    PRODUCER_IDS_KEY,
    ConfigResource,
    PartitionImage,
    ResourceType,
    chunks,
    config_key,
    encode_config,
    encode_next_producer_id,
    encode_topic,
    topic_key,
)
from broker.controller.metadata_store import MetadataStore, Put, key_absent
from broker.controller.store_writer import StoreWriter, Unit
from config.errors import InvalidConfigError
from config.topic import validate_topic_overrides
from storage.errors import CorruptFileError
from storage.filesystem import Filesystem
from storage.leader_epochs import LeaderEpochCache
from storage.partition_directory import DirectoryState, parse_directory
from storage.partition_metadata import PARTITION_METADATA, read_partition_metadata
from storage.randomness import Randomness

LOGGER = logging.getLogger(__name__)

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
UNKNOWN_PRODUCER_IDS_START = 1_000_000_000
"""Where producer ids begin when nothing tells which were given out: far above any that were."""

NOT_TOPICS = frozenset({"__cluster_metadata"})


@dataclass(slots=True)
class FoundTopic:
    """A topic as its directories show it: id, and the leader epoch of each partition found."""

    topic_id: UUID | None = None
    leader_epochs: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Found:
    """What log directories hold."""

    topics: dict[str, FoundTopic] = field(default_factory=dict)
    metadata: KafkaMetadata | None = None


def look_around(filesystem: Filesystem, log_dirs: Iterable[str]) -> Found:
    """List what log directories hold. Blocks for the disk.

    Raises:
        DiskError: A directory cannot be read.
    """
    found = Found()
    for log_dir in log_dirs:
        if not filesystem.exists(log_dir):
            continue
        found.metadata = found.metadata or read_kafka_metadata(filesystem, log_dir)
        for entry in filesystem.list_directory(log_dir):
            parsed = parse_directory(entry.name) if entry.is_directory else None
            if parsed is None or parsed.state is not DirectoryState.CURRENT:
                continue
            topic, index = parsed.topic_partition
            if topic in NOT_TOPICS:
                continue
            path = join(log_dir, entry.name)
            known = found.topics.setdefault(topic, FoundTopic())
            known.topic_id = known.topic_id or _topic_id(filesystem, path)
            known.leader_epochs[index] = _leader_epoch(filesystem, path)
    return found


def _topic_id(filesystem: Filesystem, path: str) -> UUID | None:
    try:
        return read_partition_metadata(filesystem, join(path, PARTITION_METADATA))
    except CorruptFileError as error:
        LOGGER.warning("partition without its topic id directory=%s error=%s", path, error)
        return None


def _leader_epoch(filesystem: Filesystem, path: str) -> int:
    latest = LeaderEpochCache(join(path, LEADER_EPOCH_CHECKPOINT), filesystem).latest_epoch
    return 0 if latest is None else latest


async def adopt(store: MetadataStore, found: Found, *, node_id: int, randomness: Randomness) -> int:
    """Fill an empty metadata store with what was found; returns how many topics there are.

    Raises:
        StoreError: The store refused.
    """
    units = []
    configs = found.metadata.configs if found.metadata is not None else {}
    for name, topic in found.topics.items():
        topic_id = topic.topic_id or randomness.uuid4()
        partitions = [
            PartitionImage(
                index=index,
                leader=node_id,
                leader_epoch=topic.leader_epochs.get(index, 0),
                partition_epoch=0,
                replicas=(node_id,),
                isr=(node_id,),
            )
            for index in range(max(topic.leader_epochs) + 1)
        ]
        puts = [Put(topic_key(name), encode_topic(topic_id))]
        puts += [Put(key, value) for key, value in chunks(topic_id, partitions)]
        settings = _known(name, configs.get((ResourceType.TOPIC, name), {}))
        if settings:
            resource = ConfigResource(ResourceType.TOPIC, name)
            puts.append(Put(config_key(resource), encode_config(settings)))
        units.append(Unit(compare=(key_absent(topic_key(name)),), operations=tuple(puts)))
    next_id = found.metadata.next_producer_id if found.metadata is not None else 0
    units.append(
        Unit(
            compare=(key_absent(PRODUCER_IDS_KEY),),
            operations=(
                Put(
                    PRODUCER_IDS_KEY,
                    encode_next_producer_id(next_id or UNKNOWN_PRODUCER_IDS_START),
                ),
            ),
        )
    )
    outcome = await StoreWriter(store).commit(units)
    for error in outcome.errors:
        if error is not None:
            raise error
    return len(found.topics)


def _known(topic: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that are ours too; one that is not must not keep a topic from being served.

    `remote.storage.enable` stays whether or not there is remote storage: the controller refuses to
    start without it, as Kafka does.
    """
    kept = {}
    for key, text in settings.items():
        try:
            validate_topic_overrides({key: text}, remote_storage_system_enabled=True)
        except InvalidConfigError as error:
            LOGGER.warning("setting left behind topic=%s key=%s reason=%s", topic, key, error)
            continue
        kept[key] = text
    return kept
