"""Taking over log directories with partitions, but without a metadata store.

A released Kafka wrote them, or the store is lost. A new store is filled from what is there: topics
with their ids from the partition directories, leader epochs from their checkpoints, settings and
producer ids from Kafka's metadata log. From then on the store is the truth, as always.

    its settings are known         the topic has them
    internal topic                 the settings that belong to it, under those that are known
    anything else                  nothing is deleted and nothing compacted until an operator says
                                   what may go: `UNKNOWN_SETTINGS`

Without a metadata log this is done by command only (`varve dirs adopt`): the settings of a topic
say what of its data may be deleted, and there is no default that is safe and right.

Consumer groups need nothing: `__consumer_offsets` is a topic like the others, in Kafka's format.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from posixpath import join
from typing import Final
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.kafka_metadata import (
    TOPIC_RESOURCE,
    KafkaMetadata,
    KafkaReplicas,
    read_kafka_metadata,
)
from broker.controller.images.metadata_records import (
    PRODUCER_IDS_KEY,
    ConfigResource,
    ResourceType,
    chunks,
    config_key,
    directory_key,
    encode_config,
    encode_directory,
    encode_next_producer_id,
    encode_topic,
    topic_key,
)
from broker.controller.images.partition_image import PartitionImage
from broker.controller.store.metadata_store import MetadataStore, Put, key_absent
from broker.controller.store.store_writer import StoreWriter, Unit
from broker.controller.topics.topics import automatic_topic
from config.broker import BrokerConfig
from config.errors import InvalidConfigError
from config.topic import validate_topic_overrides
from storage.checkpoints.checkpoint_files import LOG_START_OFFSET_CHECKPOINT, read_offsets
from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.checkpoints.log_directory import LOST, RESERVED_DIRECTORY_IDS
from storage.checkpoints.partition_metadata import PARTITION_METADATA, read_partition_metadata
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from storage.errors import CorruptFileError
from storage.types.log_files import LOG_SUFFIX, parse_log_file_name
from storage.types.partition_directory import DirectoryState, parse_directory
from storage.types.topic_partition import TopicPartition

LOGGER = logging.getLogger(__name__)

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
UNKNOWN_PRODUCER_IDS_START = 1_000_000_000
"""Where producer ids begin when nothing says which were given out: far above any that were."""

NOT_TOPICS = frozenset({"__cluster_metadata"})

UNKNOWN_SETTINGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
"""Settings of a topic whose own are lost: under these no record is ever deleted."""


@dataclass(slots=True)
class FoundTopic:
    """A topic as its directories show it.

    Attributes:
        topic_ids: Of each partition found; None: its directory does not say.
        leader_epochs: Of each partition found.
        has_lost_head: A partition begins on disk behind its log start: the rest is in remote
            storage.
    """

    topic_ids: dict[int, UUID | None] = field(default_factory=dict)
    leader_epochs: dict[int, int] = field(default_factory=dict)
    has_lost_head: bool = False

    def topic_id(self, in_metadata: UUID | None) -> UUID | None:
        """The topic's id: that of the metadata log, unless all directories have another."""
        ids = [one for one in self.topic_ids.values() if one is not None]
        return in_metadata if not ids or in_metadata in ids else ids[0]


@dataclass(slots=True)
class Found:
    """What log directories hold. `is_ours`: they are a node's that has lost its metadata store."""

    topics: dict[str, FoundTopic] = field(default_factory=dict)
    metadata: KafkaMetadata | None = None
    is_ours: bool = False


def scan_log_dirs(
    filesystem: Filesystem, log_dirs: Iterable[str], metadata_dir: str | None = None
) -> Found:
    """List what log directories hold. Blocks for the disk.

    Args:
        filesystem: The disk.
        log_dirs: Where to look.
        metadata_dir: Where else to look for Kafka's metadata log.

    Raises:
        DiskError: A directory cannot be read.
    """
    found = Found()
    for log_dir in log_dirs:
        if not filesystem.exists(log_dir):
            continue
        found.metadata = found.metadata or read_kafka_metadata(filesystem, log_dir)
        starts = _log_starts(filesystem, log_dir)
        for entry in filesystem.list_directory(log_dir):
            parsed = parse_directory(entry.name) if entry.is_directory else None
            if parsed is None or parsed.state is not DirectoryState.CURRENT:
                continue
            topic, index = parsed.topic_partition
            if topic in NOT_TOPICS:
                continue
            path = join(log_dir, entry.name)
            known = found.topics.setdefault(topic, FoundTopic())
            known.topic_ids[index] = _topic_id(filesystem, path)
            known.leader_epochs[index] = _leader_epoch(filesystem, path)
            start = starts.get(parsed.topic_partition, 0)
            known.has_lost_head |= _first_offset(filesystem, path) > start
    if metadata_dir is not None and filesystem.exists(metadata_dir):
        found.metadata = found.metadata or read_kafka_metadata(filesystem, metadata_dir)
    return found


def _log_starts(filesystem: Filesystem, log_dir: str) -> Mapping[TopicPartition, int]:
    try:
        return read_offsets(filesystem, join(log_dir, LOG_START_OFFSET_CHECKPOINT))
    except CorruptFileError:
        return {}


def _first_offset(filesystem: Filesystem, path: str) -> int:
    names = [parse_log_file_name(entry.name) for entry in filesystem.list_directory(path)]
    offsets = [
        name.base_offset
        for name in names
        if name is not None and name.kind == LOG_SUFFIX and not name.stage
    ]
    return min(offsets, default=0)


def _topic_id(filesystem: Filesystem, path: str) -> UUID | None:
    try:
        return read_partition_metadata(filesystem, join(path, PARTITION_METADATA))
    except CorruptFileError as error:
        LOGGER.warning(
            "partition.metadata cannot be read, topic id unknown directory=%s error=%s", path, error
        )
        return None


def _leader_epoch(filesystem: Filesystem, path: str) -> int:
    latest = LeaderEpochCache(join(path, LEADER_EPOCH_CHECKPOINT), filesystem).latest_epoch
    return 0 if latest is None else latest


async def adopt(
    store: MetadataStore,
    found: Found,
    *,
    node_id: int,
    randomness: Randomness,
    settings: BrokerConfig | None = None,
    first_producer_id: int = UNKNOWN_PRODUCER_IDS_START,
) -> int:
    """Fill an empty metadata store with what was found; returns how many topics there are.

    Args:
        store: Where to.
        found: What there is.
        node_id: Whose it is.
        randomness: For the ids of topics that have none.
        settings: For the settings of internal topics.
        first_producer_id: Where producer ids begin when nothing says which were given out.

    Raises:
        StoreError: The store refused.
    """
    units = []
    settings = settings or BrokerConfig()
    in_metadata = found.metadata.topics if found.metadata is not None else {}
    missing: set[UUID] = set()
    topics = found.topics | {name: FoundTopic() for name in expected_elsewhere(found, node_id)}
    for name, topic in topics.items():
        topic_id = topic.topic_id(in_metadata.get(name)) or randomness.uuid4()
        absent = _absent(topic, topic_id, found.metadata, node_id)
        missing.update(absent.values())
        partitions = [
            PartitionImage(
                index=index,
                leader=node_id,
                leader_epoch=topic.leader_epochs.get(index, 0),
                partition_epoch=0,
                replicas=(node_id,),
                isr=(node_id,),
                directories=(absent[index],) if index in absent else (),
            )
            for index in range(max([*topic.leader_epochs, *absent]) + 1)
        ]
        puts = [Put(topic_key(name), encode_topic(topic_id))]
        puts += [Put(key, value) for key, value in chunks(topic_id, partitions)]
        overrides = _settings_of(name, topic_id, found, settings)
        if overrides:
            resource = ConfigResource(ResourceType.TOPIC, name)
            puts.append(Put(config_key(resource), encode_config(overrides)))
        units.append(Unit(compare=(key_absent(topic_key(name)),), operations=tuple(puts)))
    units += [
        Unit(compare=(), operations=(Put(directory_key(node_id, one), encode_directory("")),))
        for one in missing
    ]
    next_id = found.metadata.next_producer_id if found.metadata is not None else 0
    next_id = next_id or first_producer_id
    units.append(
        Unit(
            compare=(key_absent(PRODUCER_IDS_KEY),),
            operations=(Put(PRODUCER_IDS_KEY, encode_next_producer_id(next_id)),),
        )
    )
    outcome = await StoreWriter(store).commit(units)
    for error in outcome.errors:
        if error is not None:
            raise error
    return len(topics)


def expected_elsewhere(found: Found, node_id: int) -> list[str]:
    """Topics that Kafka's metadata log places on this node, and no directory has anything of."""
    if found.metadata is None:
        return []
    return [
        name
        for name, topic_id in found.metadata.topics.items()
        if name not in found.topics
        and any(
            node_id in one.replicas for one in found.metadata.partitions.get(topic_id, {}).values()
        )
    ]


def _absent(
    topic: FoundTopic, topic_id: UUID, metadata: KafkaMetadata | None, node_id: int
) -> dict[int, UUID]:
    """Partitions that must be here and are not, with their log directories, else `LOST`.

    Empty logs in their place would look as if their records had never been.
    """
    said = metadata.partitions.get(topic_id) if metadata is not None else None
    if said is None:
        known = range(max(topic.leader_epochs, default=-1) + 1) if metadata is None else ()
        return {index: LOST for index in known if index not in topic.leader_epochs}
    return {
        index: _directory_of(one, node_id)
        for index, one in said.items()
        if node_id in one.replicas and index not in topic.leader_epochs
    }


def _directory_of(partition: KafkaReplicas, node_id: int) -> UUID:
    for node, directory_id in zip(partition.replicas, partition.directories, strict=False):
        if node == node_id and directory_id.int >= RESERVED_DIRECTORY_IDS:
            return directory_id
    return LOST


def _settings_of(name: str, topic_id: UUID, found: Found, settings: BrokerConfig) -> dict[str, str]:
    """What is set on a topic that is taken over; see the module."""
    configs = automatic_topic(name, ClusterImage.empty(), settings).configs
    own = {key: text for key, text in configs if text is not None}
    if found.metadata is not None:
        said_of = found.metadata.topics.get(name)
        set_on_it = found.metadata.configs.get((TOPIC_RESOURCE, name))
        if said_of == topic_id or (said_of is None and set_on_it is not None):
            return own | _known(name, set_on_it or {})
    if own:
        return own
    LOGGER.warning(
        "topic configs are unknown, retention and compaction wait until they are set topic=%s", name
    )
    if found.is_ours and name in found.topics and found.topics[name].has_lost_head:
        # Its history is in remote storage: without this its log start would be raised over it.
        return {**UNKNOWN_SETTINGS, "remote.storage.enable": "true"}
    return dict(UNKNOWN_SETTINGS)


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
            LOGGER.warning(
                "topic config is not supported, left out topic=%s key=%s reason=%s",
                topic,
                key,
                error,
            )
            continue
        kept[key] = text
    return kept
