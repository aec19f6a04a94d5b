"""Keys and values of the metadata store.

    key                                  value
    cluster/id                           the cluster id, 22 characters, plain text
    store                                {"v": 1, "id": <id of this store>, "node": <node id>};
                                         every log directory of the node names the id
    topics/<name>                        {"v": 1, "id": <topic id>}
    partitions/<topic id>/<first index>  {"v": 1, "p": [[replicas, isr, leader, leader epoch,
                                         partition epoch], ...]}   up to 128 partitions, the
                                         first one's index in ten digits; a sixth element has
                                         the log directory of each replica, 22 characters each;
                                         a seventh what else is not empty: {"elr": [...], "last":
                                         [...], "recovering": 1, "adding": [...], "removing": [...]}
    directories/<node id>/<id>           {"v": 1, "path": <where it was last>}: a log directory
                                         with partitions of the node (KIP-858)
    configs/<resource type>/<name>       {"v": 1, "c": {<key>: <value>, ...}}  what was set, as text
    deleted-topics/<topic id>            the name of a topic that had remote storage, plain text:
                                         what it has there is being removed
    producer-ids                         {"v": 1, "next": <first producer id not yet assigned>}
    features                             {"v": 1, "f": {<name>: <level>, ...}}  finalised levels
    cluster/incarnation                  of a cluster's store: a random id, plain text, written
                                         once; every log directory of its brokers names it
    cluster/remote-claim                 {"v": 1}: a broker of the cluster has claimed a bucket
    brokers/ live/ draining/ fences/     brokers of a cluster, and its controller: see
    suspects/ offline/ controller               `broker.controller.images.broker_records`
    controller-writes, -history          of controllers: see
                                                `broker.controller.images.controller_history`

Values are UTF-8 JSON; a topic id is written as Kafka does, 22 characters of URL-safe base64.
Partitions lie together so that a topic of 10,000 fits one transaction (128 operations, 1.5 MiB),
and in several chunks so that a change of one partition rewrites a few kilobytes.
"""

import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from broker.controller.images.features import SUPPORTED, unsupported
from broker.controller.images.partition_image import PartitionImage
from storage.types.uuid_text import format_uuid, parse_uuid

RECORD_VERSION = 1
"""Version written into every JSON value; a reader refuses what is newer."""

PARTITIONS_PER_CHUNK = 128
"""Partitions under one key."""

CLUSTER_ID_KEY = "cluster/id"
STORE_KEY = "store"
TOPICS = "topics/"
PARTITIONS = "partitions/"
DIRECTORIES = "directories/"
CONFIGS = "configs/"
DELETED_TOPICS = "deleted-topics/"
PRODUCER_IDS_KEY = "producer-ids"
FEATURES_KEY = "features"
INCARNATION_KEY = "cluster/incarnation"
REMOTE_CLAIM_KEY = "cluster/remote-claim"
BROKERS = "brokers/"
LIVE = "live/"
DRAINING = "draining/"
FENCES = "fences/"
SUSPECTS = "suspects/"
OFFLINE = "offline/"
CONTROLLER_KEY = "controller"


class MetadataFormatError(Exception):
    """A value in the metadata store cannot be read: damaged, or written by a newer release."""


class UnsupportedLevelError(MetadataFormatError):
    """The cluster works at a level of a feature that this release does not have."""


class ResourceType(enum.IntEnum):
    """What a setting belongs to (Kafka's ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """One thing that has settings. A broker's name is its id; empty means all brokers."""

    type: ResourceType
    name: str


class DirectoryImage(NamedTuple):
    """A log directory that holds partitions. `path`: where it was last, empty if unknown."""

    node_id: int
    path: str


def directory_key(node_id: int, directory_id: UUID) -> str:
    """Key of a log directory."""
    return f"{DIRECTORIES}{node_id}/{format_uuid(directory_id)}"


def parse_directory_key(key: str) -> tuple[int, UUID]:
    """Node id and directory id.

    Raises:
        MetadataFormatError: Not such a key.
    """
    node_id, _, directory_id = key.removeprefix(DIRECTORIES).partition("/")
    try:
        return int(node_id), parse_uuid(directory_id)
    except ValueError as error:
        raise MetadataFormatError(f"{key}: {error}") from error


def encode_directory(path: str) -> bytes:
    """Value of a log directory's key."""
    return encode_record({"path": path})


def decode_directory(key: str, value: bytes) -> str:
    """Where the directory was last.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    try:
        return str(decode_record(key, value)["path"])
    except KeyError as error:
        raise MetadataFormatError(f"{key}: {error!r}") from error


def topic_key(name: str) -> str:
    """Key of a topic."""
    return TOPICS + name


def deleted_topic_key(topic_id: UUID) -> str:
    """Key that outlives a topic until nothing of it is left in remote storage."""
    return DELETED_TOPICS + format_uuid(topic_id)


def parse_deleted_topic_key(key: str) -> UUID:
    """The topic's id.

    Raises:
        MetadataFormatError: Not such a key.
    """
    try:
        return parse_uuid(key.removeprefix(DELETED_TOPICS))
    except ValueError as error:
        raise MetadataFormatError(f"{key}: {error}") from error


def partitions_prefix(topic_id: UUID) -> str:
    """Prefix of a topic's partitions."""
    return f"{PARTITIONS}{format_uuid(topic_id)}/"


def partitions_key(topic_id: UUID, first_index: int) -> str:
    """Key of the chunk that begins with partition `first_index`."""
    assert first_index % PARTITIONS_PER_CHUNK == 0
    return f"{partitions_prefix(topic_id)}{first_index:010d}"


def config_key(resource: ConfigResource) -> str:
    """Key of a resource's settings."""
    return f"{CONFIGS}{resource.type.name.lower()}/{resource.name}"


def parse_partitions_key(key: str) -> tuple[UUID, int]:
    """Topic id and first index of a chunk's key.

    Raises:
        MetadataFormatError: Not such a key.
    """
    topic_id, _, first_index = key.removeprefix(PARTITIONS).partition("/")
    try:
        return parse_uuid(topic_id), int(first_index)
    except ValueError as error:
        raise MetadataFormatError(f"{key}: {error}") from error


def parse_config_key(key: str) -> ConfigResource:
    """The resource a settings key belongs to; its name may hold any character.

    Raises:
        MetadataFormatError: Not such a key.
    """
    kind, _, name = key.removeprefix(CONFIGS).partition("/")
    try:
        return ConfigResource(ResourceType[kind.upper()], name)
    except KeyError as error:
        raise MetadataFormatError(f"{key}: unknown resource type {kind!r}") from error


def encode_topic(topic_id: UUID) -> bytes:
    """Value of a topic's key."""
    return encode_record({"id": format_uuid(topic_id)})


def decode_topic(key: str, value: bytes) -> UUID:
    """Topic id under a topic's key.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    try:
        return parse_uuid(decode_record(key, value)["id"])
    except (KeyError, TypeError, ValueError) as error:
        raise MetadataFormatError(f"{key}: {error!r}") from error


def encode_partitions(partitions: Iterable[PartitionImage]) -> bytes:
    """Value of one chunk, its partitions in order."""
    return encode_record({"p": [_partition_fields(partition) for partition in partitions]})


def _partition_fields(p: PartitionImage) -> list[object]:
    fields: list[object] = [p.replicas, p.isr, p.leader, p.leader_epoch, p.partition_epoch]
    more: dict[str, object] = {}
    if p.elr:
        more["elr"] = p.elr
    if p.last_known_elr:
        more["last"] = p.last_known_elr
    if p.is_recovering:
        more["recovering"] = 1
    if p.adding:
        more["adding"] = p.adding
    if p.removing:
        more["removing"] = p.removing
    if p.directories or more:
        fields.append(list(map(format_uuid, p.directories)))
    if more:
        fields.append(more)
    return fields


@lru_cache(maxsize=1024)
def _directories(texts: tuple[str, ...]) -> tuple[UUID, ...]:
    """One object for all partitions that lie alike."""
    return tuple(map(parse_uuid, texts))


def _partition(
    index: int,
    replicas: list[int],
    isr: list[int],
    leader: int,
    leader_epoch: int,
    epoch: int,
    directories: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
) -> PartitionImage:
    where = _directories(tuple(directories)) if directories else ()
    if more is None:
        return PartitionImage(
            index, leader, leader_epoch, epoch, tuple(replicas), tuple(isr), where
        )
    return PartitionImage(
        index,
        leader,
        leader_epoch,
        epoch,
        tuple(replicas),
        tuple(isr),
        where,
        tuple(more.get("elr", ())),
        tuple(more.get("last", ())),
        bool(more.get("recovering", 0)),
        tuple(more.get("adding", ())),
        tuple(more.get("removing", ())),
    )


def decode_partitions(key: str, value: bytes, first_index: int) -> list[PartitionImage]:
    """The partitions of one chunk.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    try:
        return [
            _partition(index, *fields)
            for index, fields in enumerate(decode_record(key, value)["p"], first_index)
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MetadataFormatError(f"{key}: {error!r}") from error


def chunks(
    topic_id: UUID, partitions: Sequence[PartitionImage], *, from_index: int = 0
) -> list[tuple[str, bytes]]:
    """Keys and values of the chunks that hold partitions from `from_index` on."""
    first = from_index - from_index % PARTITIONS_PER_CHUNK
    return [
        (
            partitions_key(topic_id, start),
            encode_partitions(partitions[start : start + PARTITIONS_PER_CHUNK]),
        )
        for start in range(first, len(partitions), PARTITIONS_PER_CHUNK)
    ]


def encode_config(settings: Mapping[str, str]) -> bytes:
    """Value of a resource's settings."""
    return encode_record({"c": dict(sorted(settings.items()))})


def decode_config(key: str, value: bytes) -> dict[str, str]:
    """A resource's settings.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    try:
        return {str(name): str(text) for name, text in decode_record(key, value)["c"].items()}
    except (KeyError, AttributeError) as error:
        raise MetadataFormatError(f"{key}: {error!r}") from error


def encode_store_identity(store_id: UUID, node_id: int) -> bytes:
    """Value of the store's own key."""
    return encode_record({"id": format_uuid(store_id), "node": node_id})


def decode_store_identity(value: bytes) -> tuple[UUID, int]:
    """The store's id, and the node whose it is.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    try:
        fields = decode_record(STORE_KEY, value)
        return parse_uuid(fields["id"]), int(fields["node"])
    except (KeyError, TypeError, ValueError) as error:
        raise MetadataFormatError(f"{STORE_KEY}: {error!r}") from error


def encode_next_producer_id(producer_id: int) -> bytes:
    """Value of the producer ids' key."""
    return encode_record({"next": producer_id})


def decode_next_producer_id(value: bytes) -> int:
    """First producer id that is not yet assigned.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    try:
        return int(decode_record(PRODUCER_IDS_KEY, value)["next"])
    except (KeyError, TypeError, ValueError) as error:
        raise MetadataFormatError(f"{PRODUCER_IDS_KEY}: {error!r}") from error


def encode_features(levels: Mapping[str, int]) -> bytes:
    """Value of the features' key."""
    return encode_record({"f": dict(sorted(levels.items()))})


def decode_features(value: bytes) -> dict[str, int]:
    """Finalised levels; a supported feature that is not named has level 0.

    Raises:
        UnsupportedLevelError: A level that this release cannot work at.
        MetadataFormatError: Damaged.
    """
    try:
        stored = {
            str(name): int(level) for name, level in decode_record(FEATURES_KEY, value)["f"].items()
        }
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise MetadataFormatError(f"{FEATURES_KEY}: {error!r}") from error
    if refusal := unsupported(stored):
        raise UnsupportedLevelError(refusal)
    return {name: stored.get(name, 0) for name in SUPPORTED}


def encode_record(fields: dict[str, object]) -> bytes:
    """A value in JSON, with its version."""
    return json.dumps(
        {"v": RECORD_VERSION, **fields}, ensure_ascii=False, separators=(",", ":")
    ).encode()


def decode_record(key: str, value: bytes) -> dict[str, Any]:
    """The fields of a value in JSON.

    Raises:
        MetadataFormatError: Damaged, or of a newer release.
    """
    try:
        fields = json.loads(value)
    except ValueError as error:
        raise MetadataFormatError(f"{key}: {error}") from error
    if not isinstance(fields, dict) or fields.get("v") != RECORD_VERSION:
        raise MetadataFormatError(f"{key}: not a record of version {RECORD_VERSION}")
    return fields
