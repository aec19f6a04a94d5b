"""What log directories say of a cluster whose metadata is lost: topics, epochs, ends of logs.

    meta.properties                 cluster, broker, directory, the store's incarnation
    varve-member                    what was seen of the store, last broker epoch, other brokers
    <topic>-<n>/partition.metadata  topic id
    <topic>-<n>/leader-epoch-checkpoint, and the last batch    leader epochs that wrote
    log-start-offset-checkpoint     whether the beginning is in remote storage only

They are read where the directories are, and may be carried elsewhere as a file of JSON.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from posixpath import join
from typing import Any, Final
from uuid import UUID

from broker.controller.adoption import LEADER_EPOCH_CHECKPOINT, NOT_TOPICS
from broker.offline.log_end import NO_EPOCH, LogEnd, read_log_end
from storage.checkpoints.checkpoint_files import LOG_START_OFFSET_CHECKPOINT, read_offsets
from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.member_note import read_member_note
from storage.checkpoints.partition_metadata import PARTITION_METADATA, read_partition_metadata
from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError
from storage.types.log_files import LOG_SUFFIX, parse_log_file_name
from storage.types.partition_directory import DirectoryState, parse_directory
from storage.types.uuid_text import format_uuid, parse_uuid

VERSION: Final = 1
"""Of the file."""


class FactsError(Exception):
    """Directories, or a file about them, do not say what is needed; with a sentence."""


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """One partition's directory.

    Attributes:
        topic_id: 22 characters; empty: it does not say.
        epoch: The latest leader epoch that is known here; -1: none.
        end_epoch: Of the last batch; -1: the log has none.
        end: Behind the last record.
        is_deleted: It was waiting for its removal.
        has_lost_head: It begins behind its log start: the rest is in remote storage.
    """

    topic: str
    index: int
    topic_id: str
    epoch: int
    end_epoch: int
    end: int
    is_deleted: bool = False
    has_lost_head: bool = False

    @property
    def log_end(self) -> LogEnd:
        """For comparing replicas."""
        return LogEnd(self.end_epoch, self.end)


@dataclass(frozen=True, slots=True)
class DirectoryFacts:
    """One log directory.

    Attributes:
        path: Where it was read.
        id: 22 characters.
        incarnation: Of the store that it belongs to, 22 characters.
        revision: The highest that a process on it has seen there.
        writer: The controller whose write it saw last; empty: not known.
        write: The revision of that.
    """

    path: str
    id: str
    incarnation: str
    revision: int
    replicas: tuple[ReplicaFacts, ...]
    writer: str = ""
    write: int = 0


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One broker's log directories.

    Attributes:
        epoch: Of the broker's last life; 0: not known.
        brokers: Ids of the brokers that it saw registered.
    """

    node_id: int
    cluster_id: str
    epoch: int
    brokers: tuple[int, ...]
    directories: tuple[DirectoryFacts, ...]

    @property
    def directory_ids(self) -> frozenset[UUID]:
        """Ids of those that were read."""
        return frozenset(parse_uuid(directory.id) for directory in self.directories)


def read_facts(filesystem: Filesystem, directories: Sequence[LogDirectory]) -> NodeFacts:
    """What the locked directories of one broker say. Blocks for the disk.

    Raises:
        FactsError: They are not of one broker of a cluster.
        DiskError: One cannot be read.
    """
    nodes, clusters, epochs = set(), set(), [0]
    brokers: set[int] = set()
    found = []
    for directory in directories:
        meta = directory.meta
        if not directory.is_online:
            raise FactsError(f"{directory.path} cannot be read: {directory.offline_reason}")
        if meta is None or None in (
            meta.node_id,
            meta.cluster_id,
            meta.directory_id,
            meta.store_id,
        ):
            raise FactsError(f"{directory.path} is not a log directory of a cluster's broker")
        assert meta.directory_id is not None
        assert meta.store_id is not None
        nodes.add(meta.node_id)
        clusters.add(meta.cluster_id)
        note = read_member_note(filesystem, directory.path)
        if note is not None:
            epochs.append(note.epoch)
            brokers.update(note.brokers)
        found.append(
            DirectoryFacts(
                directory.path,
                format_uuid(meta.directory_id),
                format_uuid(meta.store_id),
                0 if note is None else note.revision,
                tuple(_replicas(filesystem, directory.path)),
                "" if note is None else note.writer,
                0 if note is None else note.write,
            )
        )
    if len(nodes) != 1 or len(clusters) != 1:
        paths = ", ".join(directory.path for directory in directories)
        raise FactsError(f"{paths} are of different brokers: name those of each apart")
    (node_id,), (cluster_id,) = nodes, clusters
    assert node_id is not None
    assert cluster_id is not None
    return NodeFacts(node_id, cluster_id, max(epochs), tuple(sorted(brokers)), tuple(found))


def _replicas(filesystem: Filesystem, log_dir: str) -> Iterable[ReplicaFacts]:
    try:
        starts = read_offsets(filesystem, join(log_dir, LOG_START_OFFSET_CHECKPOINT))
    except CorruptFileError:
        starts = {}
    for entry in sorted(filesystem.list_directory(log_dir), key=lambda one: one.name):
        parsed = parse_directory(entry.name) if entry.is_directory else None
        if parsed is None or parsed.topic_partition.topic in NOT_TOPICS:
            continue
        if parsed.state not in (DirectoryState.CURRENT, DirectoryState.DELETE):
            continue
        path = join(log_dir, entry.name)
        end = read_log_end(filesystem, path)
        latest = LeaderEpochCache(join(path, LEADER_EPOCH_CHECKPOINT), filesystem).latest_epoch
        yield ReplicaFacts(
            *parsed.topic_partition,
            _topic_id(filesystem, path),
            max(NO_EPOCH if latest is None else latest, end.epoch),
            end.epoch,
            end.offset,
            parsed.state is DirectoryState.DELETE,
            _first_offset(filesystem, path) > starts.get(parsed.topic_partition, 0),
        )


def _topic_id(filesystem: Filesystem, path: str) -> str:
    try:
        found = read_partition_metadata(filesystem, join(path, PARTITION_METADATA))
    except CorruptFileError:
        return ""
    return "" if found is None else format_uuid(found)


def _first_offset(filesystem: Filesystem, path: str) -> int:
    names = [parse_log_file_name(entry.name) for entry in filesystem.list_directory(path)]
    return min(
        (n.base_offset for n in names if n is not None and n.kind == LOG_SUFFIX and not n.stage),
        default=0,
    )


def encode_facts(facts: NodeFacts) -> bytes:
    """The file's bytes."""
    return json.dumps({"v": VERSION, **asdict(facts)}, separators=(",", ":")).encode() + b"\n"


def decode_facts(data: bytes, source: str) -> NodeFacts:
    """Facts from a file.

    Args:
        data: The whole file.
        source: Its path, for the error message.

    Raises:
        FactsError: It does not parse.
    """
    try:
        fields: dict[str, Any] = json.loads(data)
        if fields.pop("v") != VERSION:
            raise ValueError(f"not of version {VERSION}")
        directories = tuple(
            DirectoryFacts(
                **{**one, "replicas": tuple(ReplicaFacts(**each) for each in one["replicas"])}
            )
            for one in fields.pop("directories")
        )
        facts = NodeFacts(
            **{**fields, "brokers": tuple(fields["brokers"]), "directories": directories}
        )
        _ = facts.directory_ids
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FactsError(f"{source} does not say what is in log directories: {error}") from error
    return facts
