"""Makers of facts for tests."""

from uuid import UUID

from broker.offline.directory_facts import DirectoryFacts, NodeFacts, ReplicaFacts
from storage.types.uuid_text import format_uuid

INCARNATION = UUID(int=0x77 << 64)
TOPIC = UUID(int=0xAA << 64)
OTHER_TOPIC = UUID(int=0xBB << 64)


def directory_id(node: int) -> UUID:
    return UUID(int=(1000 + node) << 64)


def replica(
    index: int = 0,
    *,
    topic: str = "t",
    topic_id: UUID | None = TOPIC,
    epoch: int = 5,
    end: int = 10,
    end_epoch: int = 5,
    deleted: bool = False,
    lost_head: bool = False,
) -> ReplicaFacts:
    text = "" if topic_id is None else format_uuid(topic_id)
    return ReplicaFacts(topic, index, text, epoch, end_epoch, end, deleted, lost_head)


def node(
    node_id: int,
    *replicas: ReplicaFacts,
    brokers: tuple[int, ...] = (),
    revision: int = 0,
    incarnation: UUID = INCARNATION,
    cluster_id: str = "c",
    epoch: int = 7,
    write: tuple[str, int] = ("", 0),
) -> NodeFacts:
    directory = DirectoryFacts(
        f"/d{node_id}",
        format_uuid(directory_id(node_id)),
        format_uuid(incarnation),
        revision,
        replicas,
        *write,
    )
    return NodeFacts(node_id, cluster_id, epoch, brokers, (directory,))
