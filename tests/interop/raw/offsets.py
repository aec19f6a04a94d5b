"""Scripts about committed offsets: commit and fetch with member epochs, delete."""

from typing import Any
from uuid import UUID

from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.interop.raw.classic_groups import join, sync
from tests.interop.raw.consumer_groups import Member, member_id
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script


def commit(
    d: Dialogue, group: str, topic: str, what: str, *, version: int = 9, **fields: Any
) -> Any:
    """OffsetCommit of one partition; by id from version 10 on."""
    partition = OffsetCommitRequestPartition(
        partition_index=fields.pop("partition", 0),
        committed_offset=fields.pop("offset", 1),
        committed_leader_epoch=fields.pop("leader_epoch", -1),
        committed_metadata=fields.pop("metadata", "m"),
    )
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    if version >= 10:
        topic_id = fields.pop("topic_id", None) or d.topic_id(topic)
        topics = [OffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition])]
    values: dict[str, Any] = {"group_id": group, "topics": topics}
    return d.ask(what, OffsetCommitRequest(**(values | fields)), version)


def fetch(
    d: Dialogue, group: str, topic: str | None, what: str, *, version: int = 9, **fields: Any
) -> Any:
    """OffsetFetch of partitions 0 and 1, or of all topics."""
    topics = None
    if topic is not None and version >= 10:
        topic_id = fields.pop("topic_id", None) or d.topic_id(topic)
        topics = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0, 1])]
    elif topic is not None:
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1])]
    asked = OffsetFetchRequestGroup(group_id=group, topics=topics, **fields)
    return d.ask(what, OffsetFetchRequest(groups=[asked]), version)


@script
def commits_of_nobody(d: Dialogue) -> None:
    """Without a group, as tools and "simple" consumers commit; every version."""
    topic = d.create_topic(partitions=2)
    for version in range(2, 11):
        commit(d, d.name, topic, f"v{version}", version=version, offset=version)
        asked = min(version, 7)
        old = OffsetFetchRequest(
            group_id=d.name,
            topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1])],
        )
        d.ask(f"fetch v{asked}", old, asked)
    commit(d, "", topic, "empty group")
    commit(d, d.name, topic, "generation", generation_id_or_member_epoch=3)
    commit(d, d.name, topic, "member", member_id="nobody")
    commit(d, d.name, topic, "instance", group_instance_id="i")
    commit(
        d, d.name, topic, "member, generation", member_id="nobody", generation_id_or_member_epoch=1
    )
    commit(d, f"{d.name}-2", topic, "epoch, no group", generation_id_or_member_epoch=1)
    commit(d, d.name, topic, "no such partition", partition=9)
    commit(d, d.name, f"{topic}-none", "no such topic")
    commit(d, d.name, topic, "long metadata", metadata="m" * 4097)
    commit(d, d.name, topic, "longest metadata", metadata="m" * 4096)
    commit(d, d.name, topic, "no metadata", metadata=None)
    commit(d, d.name, topic, "negative offset", offset=-3)
    commit(d, d.name, topic, "leader epoch", leader_epoch=0, offset=4)
    commit(d, d.name, topic, "unknown topic id", version=10, topic_id=UUID(int=5))
    commit(d, d.name, topic, "nil topic id", version=10, topic_id=UUID(int=0))
    d.ask("nothing", OffsetCommitRequest(group_id=d.name))
    fetch(d, d.name, topic, "fetch")
    fetch(d, d.name, topic, "fetch by id", version=10)
    fetch(d, d.name, topic, "fetch by unknown id", version=10, topic_id=UUID(int=5))
    fetch(d, d.name, None, "fetch all")
    fetch(d, d.name, None, "fetch all by id", version=10)
    fetch(d, d.name, f"{topic}-none", "fetch no such topic")
    fetch(d, f"{d.name}-none", topic, "fetch unknown group")
    fetch(d, f"{d.name}-none", None, "fetch all of an unknown group")
    fetch(d, "", topic, "fetch empty group")
    fetch(d, d.name, topic, "fetch as a member", member_id="nobody", member_epoch=1)
    fetch(d, d.name, topic, "fetch with an epoch", member_epoch=1)


@script
def commits_of_consumer_members(d: Dialogue) -> None:
    """Member epochs in OffsetCommit and OffsetFetch v9 and v10."""
    topic = d.create_topic(partitions=2)
    m = Member(d, d.name, "m", [topic])
    m.beat("joins")
    m.settle()
    me = member_id("m")
    for version in (9, 10):
        cases: dict[str, dict[str, Any]] = {
            "good": {"member_id": me, "generation_id_or_member_epoch": m.epoch},
            "ahead": {"member_id": me, "generation_id_or_member_epoch": m.epoch + 1},
            "behind": {"member_id": me, "generation_id_or_member_epoch": m.epoch - 1},
            "epoch -1": {"member_id": me, "generation_id_or_member_epoch": -1},
            "nobody": {"member_id": "nobody", "generation_id_or_member_epoch": m.epoch},
            "no member": {"generation_id_or_member_epoch": m.epoch},
            "admin": {},
        }
        for what, fields in cases.items():
            commit(d, d.name, topic, f"v{version} {what}", version=version, **dict(fields))
        fetches: dict[str, dict[str, Any]] = {
            "good": {"member_id": me, "member_epoch": m.epoch},
            "ahead": {"member_id": me, "member_epoch": m.epoch + 1},
            "behind": {"member_id": me, "member_epoch": m.epoch - 1},
            "epoch -1": {"member_id": me, "member_epoch": -1},
            "nobody": {"member_id": "nobody", "member_epoch": m.epoch},
            "no member": {"member_epoch": m.epoch},
            "admin": {},
            "empty member": {"member_id": "", "member_epoch": -1},
        }
        for what, fields in fetches.items():
            fetch(d, d.name, topic, f"v{version} fetch {what}", version=version, **dict(fields))
    behind = {"member_id": me, "generation_id_or_member_epoch": m.epoch - 1}
    commit(d, d.name, topic, "v8 behind", version=8, **behind)
    commit(
        d, d.name, topic, "v8 good", version=8, member_id=me, generation_id_or_member_epoch=m.epoch
    )
    m.leave()
    commit(d, d.name, topic, "after leaving", member_id=me, generation_id_or_member_epoch=m.epoch)
    commit(d, d.name, topic, "admin when empty", offset=7)
    fetch(d, d.name, topic, "fetch at the end")


@script
def commits_of_classic_members(d: Dialogue) -> None:
    """Generations in OffsetCommit; a classic group in OffsetFetch with an epoch."""
    topic = d.create_topic(partitions=2)
    joined = join(d, d.name, "join")
    base = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
    commit(d, d.name, topic, "before sync", **dict(base))
    sync(d, d.name, joined, "sync")
    for version in (8, 9, 10):
        commit(d, d.name, topic, f"v{version} good", version=version, **dict(base))
        commit(
            d,
            d.name,
            topic,
            f"v{version} other generation",
            version=version,
            **(base | {"generation_id_or_member_epoch": joined.generation_id + 1}),
        )
        commit(
            d,
            d.name,
            topic,
            f"v{version} other member",
            version=version,
            **(base | {"member_id": "nobody"}),
        )
        commit(d, d.name, topic, f"v{version} nobody while there are members", version=version)
        commit(
            d,
            d.name,
            topic,
            f"v{version} instance",
            version=version,
            **(base | {"group_instance_id": "i"}),
        )
    me = joined.member_id
    fetch(d, d.name, topic, "fetch as a member", member_id=me, member_epoch=joined.generation_id)
    fetch(d, d.name, topic, "fetch of another epoch", member_id=me, member_epoch=99)


@script
def offset_delete(d: Dialogue) -> None:
    """OffsetDelete: subscribed topics are kept, unknown things named."""
    topic, other = d.create_topic("-1"), d.create_topic("-2")
    for name in (topic, other):
        commit(d, d.name, name, f"commit {name}")

    def delete(what: str, group: str, *names: str, partition: int = 0) -> None:
        partitions = [OffsetDeleteRequestPartition(partition_index=partition)]
        topics = [OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in names]
        d.ask(what, OffsetDeleteRequest(group_id=group, topics=topics))

    m = Member(d, d.name, "m", [topic])
    m.beat("joins")
    delete("subscribed and not", d.name, topic, other)
    fetch(d, d.name, None, "what is left")
    delete("no such partition", d.name, other, partition=9)
    delete("no such topic", d.name, f"{topic}-none")
    delete("nothing", d.name)
    delete("unknown group", f"{d.name}-none", topic)
    delete("empty group", "", topic)
    m.leave()
    delete("subscribed no more", d.name, topic)
    fetch(d, d.name, None, "at the end")
    joined = join(d, f"{d.name}-classic", "classic", topic=topic)
    sync(d, f"{d.name}-classic", joined, "sync")
    commit(
        d,
        f"{d.name}-classic",
        topic,
        "commit",
        member_id=joined.member_id,
        generation_id_or_member_epoch=joined.generation_id,
    )
    delete("classic, subscribed and not", f"{d.name}-classic", topic, other)
