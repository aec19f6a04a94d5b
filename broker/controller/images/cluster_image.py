"""Cluster image: an immutable snapshot of the cluster's metadata, replaced as a whole.

A request handler reads the holder's image once and sees one moment of the cluster. A new
image is made from the old one and the changed keys of the metadata store, by the same code at the
start, after our own transactions and for those of others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final
from uuid import UUID

from broker.controller.images.broker_records import (
    BROKER_KEYS,
    NO_FACTS,
    BrokerEndpoint,
    BrokerFacts,
    BrokerImage,
    decode_controller,
    parse_broker_key,
)
from broker.controller.images.controller_history import WRITES_KEY, Write, newest_write
from broker.controller.images.features import INITIAL
from broker.controller.images.metadata_records import (
    CLUSTER_ID_KEY,
    CONFIGS,
    CONTROLLER_KEY,
    DELETED_TOPICS,
    DIRECTORIES,
    FEATURES_KEY,
    PARTITIONS,
    TOPICS,
    ConfigResource,
    DirectoryImage,
    ResourceType,
    decode_config,
    decode_directory,
    decode_features,
    decode_partitions,
    decode_topic,
    parse_config_key,
    parse_deleted_topic_key,
    parse_directory_key,
    parse_partitions_key,
)
from broker.controller.images.partition_image import PartitionImage
from broker.controller.images.topic_names import INTERNAL_TOPICS
from broker.controller.store.metadata_store import KeyValue

__all__ = [
    "BrokerEndpoint",
    "BrokerFacts",
    "BrokerImage",
    "ClusterImage",
    "ConfigResource",
    "PartitionImage",
    "ResourceType",
    "TopicImage",
]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

_NO_CHUNKS: Final[Mapping[str, list[PartitionImage]]] = MappingProxyType({})

_SHOWN: Final = (
    TOPICS,
    PARTITIONS,
    CONFIGS,
    DELETED_TOPICS,
    DIRECTORIES,
    FEATURES_KEY,
    CLUSTER_ID_KEY,
    CONTROLLER_KEY,
    *BROKER_KEYS,
)


def is_shown(key: str) -> bool:
    """Whether an image shows what a key of the metadata store holds."""
    return key.startswith(_SHOWN)


def decode_chunk(key: str, value: bytes | None) -> list[PartitionImage] | None:
    """The partitions of a changed key; None of one that has none.

    It is most of what making an image takes, some tenths of a millisecond, and needs no image.

    Raises:
        MetadataFormatError: The value is damaged or of a newer release.
    """
    if value is None or not key.startswith(PARTITIONS):
        return None
    return decode_partitions(key, value, parse_partitions_key(key)[1])


@dataclass(frozen=True, slots=True)
class TopicImage:
    """One topic; `partitions[i].index == i`."""

    name: str
    topic_id: UUID
    partitions: Sequence[PartitionImage]
    overrides: Mapping[str, str]
    internal: bool

    @property
    def replication_factor(self) -> int:
        """Replicas of the first partition, as Kafka reports it; without those that leave it."""
        return len(self.partitions[0].target) if self.partitions else 0


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """The cluster's metadata at one revision of the metadata store.

    Attributes:
        configs: Settings of brokers, groups and client metrics that were set at run time; those of
            topics are the topics' `overrides`.
        deleted_topics: Of those that had remote storage, while something of them may be left there.
        controller_id: The active controller, -1 without one; on a single node itself.
        brokers: All that are registered, fenced ones too, by node id.
        revision: Grows with every change; two images of one revision are equal, except for the
            broker of a single node (`broker_revision`), which is not in the store.
        broker_revision: Grows with every change of the brokers.
        features: Finalised level of every feature there is (`broker.controller.images.features`).
        directories: Log directories with partitions, by id, whether they are here or missing.
        controller_epoch: Create revision of the `controller` key, which grows with every election;
            0 without a controller, and on a single node.
        facts: What `brokers` is made of.
        newest_write: Of the controllers; None: nothing that can be read.
    """

    cluster_id: str
    controller_id: int
    brokers: Mapping[int, BrokerImage]
    topics: Mapping[str, TopicImage]
    topics_by_id: Mapping[UUID, TopicImage]
    revision: int
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    broker_revision: int = 0
    deleted_topics: frozenset[UUID] = frozenset()
    features: Mapping[str, int] = field(default_factory=lambda: INITIAL)
    directories: Mapping[UUID, DirectoryImage] = field(default_factory=dict)
    controller_epoch: int = 0
    facts: Mapping[int, BrokerFacts] = field(default_factory=dict)
    newest_write: Write | None = None

    @classmethod
    def empty(cls, *, controller_id: int = -1) -> "ClusterImage":
        """A cluster without id, brokers, topics."""
        return cls("", controller_id, {}, {}, {}, 0)

    @classmethod
    def loaded(
        cls,
        items: Iterable[KeyValue],
        revision: int,
        *,
        controller_id: int = -1,
        decoded: Mapping[str, list[PartitionImage]] = _NO_CHUNKS,
    ) -> "ClusterImage":
        """The cluster as all keys of a store show it.

        Args:
            items: The keys; those that an image does not show are passed over.
            revision: They were read at.
            controller_id: While no key names one: on a single node itself.
            decoded: Partitions that some of the values have been decoded to (`decode_chunk`).

        Raises:
            MetadataFormatError: A value is damaged or of a newer release.
        """
        update = _Update(cls.empty(controller_id=controller_id), decoded)
        for item in items:
            update.add(item.key, item.value, item.mod_revision, item.create_revision)
        return update.finish(revision)

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """One partition by its topic's name, None when there is no such."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def name_of(self, topic_id: bytes) -> str | None:
        """A topic's name by the sixteen bytes of its id, None when there is no such."""
        found = self.topics_by_id.get(UUID(bytes=topic_id))
        return found.name if found else None

    def config(self, resource: ConfigResource) -> Mapping[str, str]:
        """What was set for a resource at run time."""
        if resource.type is ResourceType.TOPIC:
            topic = self.topics.get(resource.name)
            return topic.overrides if topic else _NOTHING
        return self.configs.get(resource, _NOTHING)

    @property
    def partition_count(self) -> int:
        """Partitions of all topics."""
        return sum(len(topic.partitions) for topic in self.topics.values())

    def with_brokers(self, brokers: Iterable[BrokerImage]) -> "ClusterImage":
        """The same cluster with other brokers."""
        return replace(
            self,
            brokers={broker.node_id: broker for broker in brokers},
            broker_revision=self.broker_revision + 1,
        )

    def with_brokers_of(self, other: "ClusterImage") -> "ClusterImage":
        """This cluster with the brokers of another image of it."""
        return replace(self, brokers=other.brokers, broker_revision=other.broker_revision)

    def with_brokers_after(self, other: "ClusterImage") -> "ClusterImage":
        """This cluster, its brokers counted as newer than those of another image of it."""
        return replace(self, broker_revision=other.broker_revision + 1)

    def at(self, revision: int) -> "ClusterImage":
        """The same at a later revision, which has changed nothing that an image shows."""
        return replace(self, revision=revision)

    def updated(
        self,
        changes: Iterable[tuple[str, bytes | None]],
        revision: int,
        decoded: Mapping[str, list[PartitionImage]] = _NO_CHUNKS,
    ) -> "ClusterImage":
        """The cluster after some keys of the metadata store have changed.

        Args:
            changes: Key and new value, None when deleted. A topic's partitions may come before it.
            revision: The store's revision after them.
            decoded: Partitions that some of the values have been decoded to (`decode_chunk`).

        Raises:
            MetadataFormatError: A value is damaged or of a newer release.
        """
        update = _Update(self, decoded)
        for key, value in changes:
            update.add(key, value, revision, self.controller_epoch or revision)
        return update.finish(revision)


class _Update:
    """Collects changed keys, then makes the image."""

    def __init__(
        self, image: ClusterImage, decoded: Mapping[str, list[PartitionImage]] = _NO_CHUNKS
    ) -> None:
        self._image = image
        self._decoded = decoded
        self._cluster_id = image.cluster_id
        self._configs: dict[ConfigResource, Mapping[str, str]] | None = None
        self._topic_ids: dict[str, UUID | None] = {}
        self._chunks: dict[UUID, dict[int, list[PartitionImage]]] = {}
        self._overrides: dict[str, Mapping[str, str]] = {}
        self._deleted_topics = image.deleted_topics
        self._features = image.features
        self._directories: dict[UUID, DirectoryImage] | None = None
        self._facts: dict[int, BrokerFacts] | None = None
        self._controller = (image.controller_id, image.controller_epoch)
        self._newest_write = image.newest_write

    def add(self, key: str, value: bytes | None, revision: int, created: int) -> None:
        """Take a key's value as of `revision`; `created`: since when it exists."""
        if key.startswith(TOPICS):
            name = key.removeprefix(TOPICS)
            self._topic_ids[name] = None if value is None else decode_topic(key, value)
        elif key.startswith(PARTITIONS):
            topic_id, first_index = parse_partitions_key(key)
            # A chunk goes only when its topic goes.
            if value is not None:
                partitions = self._decoded.get(key)
                if partitions is None:
                    partitions = decode_partitions(key, value, first_index)
                self._chunks.setdefault(topic_id, {})[first_index] = partitions
        elif key.startswith(CONFIGS):
            self._add_config(key, value)
        elif key.startswith(DELETED_TOPICS):
            one = frozenset({parse_deleted_topic_key(key)})
            before = self._deleted_topics
            self._deleted_topics = before - one if value is None else before | one
        elif key.startswith(DIRECTORIES):
            self._add_directory(key, value)
        elif key == FEATURES_KEY and value is not None:
            self._features = MappingProxyType(decode_features(value))
        elif key == CLUSTER_ID_KEY and value is not None:
            self._cluster_id = value.decode()
        elif key == CONTROLLER_KEY:
            self._controller = (-1, 0) if value is None else (decode_controller(value), created)
        elif key == WRITES_KEY:
            self._newest_write = None if value is None else newest_write(value, revision)
        elif key.startswith(BROKER_KEYS):
            self._add_broker(key, value, revision)

    def _add_broker(self, key: str, value: bytes | None, revision: int) -> None:
        kind, node_id = parse_broker_key(key)
        if self._facts is None:
            self._facts = dict(self._image.facts)
        before = self._facts.get(node_id, NO_FACTS)
        after = before.changed(kind, key, value, revision)
        if after == NO_FACTS:
            self._facts.pop(node_id, None)
        else:
            self._facts[node_id] = after

    def _brokers(self) -> Mapping[int, BrokerImage]:
        """By node id, in order of it; one whose keys have not changed is the same object."""
        facts, before = self._facts, self._image
        if facts is None:
            return before.brokers
        brokers = {}
        for node_id in sorted(facts):
            same = facts[node_id] is before.facts.get(node_id)
            image = before.brokers.get(node_id) if same else facts[node_id].image(node_id)
            if image is not None:
                brokers[node_id] = image
        return brokers

    def _add_config(self, key: str, value: bytes | None) -> None:
        resource = parse_config_key(key)
        settings = decode_config(key, value) if value is not None else {}
        if resource.type is ResourceType.TOPIC:
            self._overrides[resource.name] = MappingProxyType(settings)
            return
        if self._configs is None:
            self._configs = dict(self._image.configs)
        if settings:
            self._configs[resource] = MappingProxyType(settings)
        else:
            self._configs.pop(resource, None)

    def _add_directory(self, key: str, value: bytes | None) -> None:
        node_id, directory_id = parse_directory_key(key)
        if self._directories is None:
            self._directories = dict(self._image.directories)
        if value is None:
            self._directories.pop(directory_id, None)
        else:
            path = decode_directory(key, value)
            self._directories[directory_id] = DirectoryImage(node_id, path)

    def finish(self, revision: int) -> ClusterImage:
        image = self._image
        topics = dict(image.topics)
        topics_by_id = dict(image.topics_by_id)
        extended = [
            topics_by_id[topic_id].name for topic_id in self._chunks if topic_id in topics_by_id
        ]
        # Not a set: topics keep the order in which they came.
        for name in dict.fromkeys((*self._topic_ids, *self._overrides, *extended)):
            old = topics.get(name)
            if old is not None:
                del topics_by_id[old.topic_id]
            new = self._topic(name, old)
            if new is not None:
                topics[name] = topics_by_id[new.topic_id] = new
            elif old is not None:
                del topics[name]
        return replace(
            image,
            cluster_id=self._cluster_id,
            topics=topics,
            topics_by_id=topics_by_id,
            # The same object while no config changes: others compute from it once.
            configs=image.configs if self._configs is None else self._configs,
            revision=revision,
            deleted_topics=self._deleted_topics,
            features=self._features,
            directories=image.directories if self._directories is None else self._directories,
            controller_id=self._controller[0],
            controller_epoch=self._controller[1],
            facts=image.facts if self._facts is None else self._facts,
            newest_write=self._newest_write,
            brokers=self._brokers(),
            broker_revision=image.broker_revision + (self._facts is not None),
        )

    def _topic(self, name: str, old: TopicImage | None) -> TopicImage | None:
        topic_id = self._topic_ids.get(name, old.topic_id if old else None)
        if name in self._topic_ids:
            topic_id = self._topic_ids[name]
        if topic_id is None:
            return None
        same = old is not None and old.topic_id == topic_id
        partitions = list(old.partitions) if old is not None and same else []
        for first_index, chunk in sorted(self._chunks.get(topic_id, {}).items()):
            partitions[first_index : first_index + len(chunk)] = chunk
        overrides = self._overrides.get(name)
        if overrides is None:
            overrides = old.overrides if old is not None and same else _NOTHING
        return TopicImage(name, topic_id, tuple(partitions), overrides, name in INTERNAL_TOPICS)
