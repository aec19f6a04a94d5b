"""Scripts about share groups (KIP-932): membership, start offsets, and groups of another kind."""

import re
from typing import Any

from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.list_groups import ListGroupsRequest
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
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from tests.interop.raw.consumer_groups import Member
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script
from tests.interop.raw.share_delivery import (
    ACCEPT,
    RELEASE,
    configure,
    produce,
    sharer,
)
from tests.interop.raw.share_member import LEAVE, ShareMember


def describe(d: Dialogue, what: str, *groups: str) -> Any:
    """ShareGroupDescribe."""
    return d.ask(what, ShareGroupDescribeRequest(group_ids=list(groups)))


def describe_quietly(d: Dialogue, what: str, group: str) -> None:
    """The same without epochs, where it is a matter of timing how many there were."""
    (found,) = d.ask_quietly(ShareGroupDescribeRequest(group_ids=[group])).groups
    members = sorted(
        str((m.member_id, m.subscribed_topic_names, d.plain(m.assignment))) for m in found.members
    )
    agree = found.group_epoch == found.assignment_epoch
    d.transcript.append(f"{what}: {found.error_code} {found.group_state} {agree} {members}")


def offsets_of(
    d: Dialogue, what: str, group: str, *topics: tuple[str, list[int]], version: int = 1
) -> Any:
    """DescribeShareGroupOffsets; of all topics when none is named."""
    asked = [
        DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
        for name, partitions in topics
    ]
    one = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=asked or None)
    return d.ask(what, DescribeShareGroupOffsetsRequest(groups=[one]), version)


def alter(d: Dialogue, what: str, group: str, *offsets: tuple[str, int, int]) -> Any:
    """AlterShareGroupOffsets: topic, partition, offset."""
    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=[
                AlterShareGroupOffsetsRequestPartition(
                    partition_index=partition, start_offset=offset
                )
            ],
        )
        for name, partition, offset in offsets
    ]
    return d.ask(what, AlterShareGroupOffsetsRequest(group_id=group, topics=topics))


def delete_offsets(d: Dialogue, what: str, group: str, *topics: str) -> Any:
    """DeleteShareGroupOffsets."""
    named = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    return d.ask(what, DeleteShareGroupOffsetsRequest(group_id=group, topics=named))


@script
def share_heartbeats_are_checked(d: Dialogue) -> None:
    """What a heartbeat must and must not say; epochs a member cannot be in."""
    topic, other = d.create_topic(), d.create_topic("-2")
    m = ShareMember(d, d.name, "m", [topic])
    m.beat("empty group", group_id="")
    m.beat("blank group", group_id=" ")
    m.beat("empty member", member_id="")
    m.beat("blank member", member_id=" ")
    m.beat("long member", member_id="m" * 37)
    m.beat("empty rack", rack_id="")
    m.beat("no subscription", subscribed_topic_names=None)
    m.beat("empty subscription", subscribed_topic_names=[])
    m.beat("epoch -2", member_epoch=-2)
    m.beat("leaves unknown group", member_epoch=LEAVE)
    m.beat("epoch 5 of unknown group", member_epoch=5)
    describe(d, "nothing came of it", d.name)
    m.beat("joins")
    m.settle(1)
    n = ShareMember(d, d.name, "n", [topic])
    n.beat("epoch 1 of unknown member", member_epoch=1)
    n.beat("leaves unknown", member_epoch=LEAVE)
    m.beat("epoch ahead", member_epoch=m.epoch + 1)
    m.beat("subscribes to one more", subscribed_topic_names=[topic, other])
    m.topics = [topic, other]
    m.settle(2, "has both")
    m.beat("epoch of long ago", member_epoch=1)
    m.beat("empties its subscription", subscribed_topic_names=[])
    m.beat("unknown topic", subscribed_topic_names=[f"{d.name}-none"])
    m.beat("bad topic name", subscribed_topic_names=["not/a/topic"])
    m.beat("joins again", member_epoch=0, subscribed_topic_names=[topic])
    m.leave()
    m.beat("leaves again", member_epoch=LEAVE)
    describe_quietly(d, "empty", d.name)


def _either_partition(d: Dialogue) -> None:
    """Which one a member gets depends on the topic's id, which is random, in Kafka and here."""
    d.transcript[-1] = re.sub(r"'partitions': \[[01]\]", "'partitions': [either]", d.transcript[-1])


@script
def share_members_work_together(d: Dialogue) -> None:
    """Two members, more members than partitions, topics that come and go."""
    topic = d.create_topic(partitions=2)
    a, b, c = (ShareMember(d, d.name, name, [topic]) for name in "abc")
    a.beat("joins")
    a.settle(2)
    b.beat("joins")
    _either_partition(d)
    for _ in range(3):
        for member in (a, b):
            answer = d.ask_quietly(member.request())
            member.epoch = answer.member_epoch
    describe_quietly(d, "two", d.name)
    _either_partition(d)
    for _ in range(4):
        for member in (a, b, c):
            answer = d.ask_quietly(member.request())
            member.epoch = answer.member_epoch
    (found,) = d.ask_quietly(ShareGroupDescribeRequest(group_ids=[d.name])).groups
    counts = sorted(
        sum(len(t.partitions) for t in m.assignment.topic_partitions) for m in found.members
    )
    d.transcript.append(f"three: {counts}")
    b.leave()
    c.leave()
    a.settle(2, "alone again")
    describe_quietly(d, "one", d.name)
    d.ask(
        "delete topic", DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=9000)
    )
    a.settle(0, "has nothing left")
    describe_quietly(d, "without topic", d.name)


@script
def share_group_types_clash(d: Dialogue) -> None:
    """Requests of one kind of group for a group of another."""
    topic = d.create_topic()
    shared, consumed, classic = f"{d.name}-s", f"{d.name}-c", f"{d.name}-old"
    s = ShareMember(d, shared, "s", [topic])
    s.beat("joins")
    s.settle(1)
    c = Member(d, consumed, "c", [topic])
    c.beat("joins")
    c.settle()
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    commit = OffsetCommitRequest(
        group_id=classic,
        member_id="",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    d.ask("makes a classic group", commit, 8)
    for group in (consumed, classic):
        m = ShareMember(d, group, "m", [topic])
        m.beat(f"joins {group}")
        m.beat(f"beats {group}", member_epoch=3)
        m.beat(f"leaves {group}", member_epoch=LEAVE)
        describe(d, f"share describe {group}", group)
        alter(d, f"alter {group}", group, (topic, 0, 0))
        delete_offsets(d, f"delete offsets {group}", group, topic)
        offsets_of(d, f"share offsets {group}", group, (topic, [0]))
        offsets_of(d, f"all share offsets {group}", group)
    Member(d, shared, "x", [topic]).beat("joins share group")
    Member(d, shared, "x", [topic], epoch=3).beat("beats share group")
    d.ask("consumer describe", ConsumerGroupDescribeRequest(group_ids=[shared]), 1)
    d.ask("classic describe", DescribeGroupsRequest(groups=[shared]), 6)
    d.ask("classic describe v5", DescribeGroupsRequest(groups=[shared]), 5)
    join = JoinGroupRequest(
        group_id=shared,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    d.ask("classic join", join, 9)
    d.ask("classic beat", HeartbeatRequest(group_id=shared, generation_id=1, member_id="m"), 4)
    commit.group_id = shared
    d.ask("commit", commit, 8)
    d.ask("commit v9", commit, 9)
    one = OffsetFetchRequestGroup(group_id=shared, topics=None)
    d.ask("fetch offsets", OffsetFetchRequest(groups=[one]), 8)
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    d.ask("delete consumer offsets", OffsetDeleteRequest(group_id=shared, topics=topics))
    s.leave()
    Member(d, shared, "x", [topic]).beat("joins empty share group")
    d.ask("classic join of empty share group", join, 9)
    for types in (["share"], ["Share"], ["consumer"], ["classic"]):
        answer = d.ask_quietly(ListGroupsRequest(states_filter=[], types_filter=types), 5)
        answer.groups = [g for g in answer.groups if g.group_id.startswith(d.name)]
        d.note(f"list {types}", answer)


@script
def share_group_is_deleted(d: Dialogue) -> None:
    """Not while it has members; with it go its offsets."""
    topic = d.create_topic(partitions=2)
    produce(d, topic, 3)
    configure(d, d.name, share_auto_offset_reset="earliest")
    m = ShareMember(d, d.name, "m", [topic])
    m.beat("joins")
    m.settle(2)
    a = sharer(d, "a", topic)
    a.fetch("reads")
    a.say("accepts", (0, 0, [ACCEPT]))
    d.ask("delete with a member", DeleteGroupsRequest(groups_names=[d.name]))
    d.ask("delete twice", DeleteGroupsRequest(groups_names=[d.name, d.name]))
    m.leave()
    offsets_of(d, "before", d.name, (topic, [0, 1]))
    d.ask("delete", DeleteGroupsRequest(groups_names=[d.name]))
    d.ask("delete again", DeleteGroupsRequest(groups_names=[d.name]))
    describe(d, "describe", d.name)
    offsets_of(d, "offsets", d.name, (topic, [0, 1]))
    offsets_of(d, "all offsets", d.name)
    a.say("says to a group that is gone", (1, 1, [ACCEPT]))
    m.beat("beats in it", member_epoch=4)
    m.beat("joins anew")
    m.settle(2)
    offsets_of(d, "offsets of the new one", d.name, (topic, [0, 1]))


@script
def share_offsets_are_altered(d: Dialogue) -> None:
    """Groups with and without members; topics, partitions and offsets there are not."""
    topic = d.create_topic(partitions=2)
    none = f"{d.name}-none"
    produce(d, topic, 3, 3)
    alter(d, "no group id", "", (topic, 0, 0))
    alter(d, "nothing, of an unknown group", d.name)
    describe(d, "is there a group", d.name)
    alter(d, "unknown topic, of an unknown group", f"{d.name}-x", (none, 0, 0))
    describe(d, "is there one now", f"{d.name}-x")
    alter(d, "unknown group", d.name, (topic, 0, 2), (topic, 1, 0))
    describe_quietly(d, "made", d.name)
    offsets_of(d, "altered", d.name)
    alter(d, "unknown topic", d.name, (none, 0, 0))
    alter(d, "unknown partition", d.name, (topic, 2, 0))
    alter(d, "negative partition", d.name, (topic, -1, 0))
    alter(d, "some known", d.name, (topic, 0, 1), (none, 0, 1), (topic, 7, 1))
    alter(d, "negative offset", d.name, (topic, 0, -1))
    offsets_of(d, "after -1", d.name, (topic, [0]))
    alter(d, "very negative offset", d.name, (topic, 0, -5))
    offsets_of(d, "after -5", d.name, (topic, [0]))
    alter(d, "beyond the end", d.name, (topic, 0, 100))
    offsets_of(d, "after 100", d.name, (topic, [0]))
    alter(d, "the same one twice", d.name, (topic, 0, 1), (topic, 0, 4))
    offsets_of(d, "after twice", d.name, (topic, [0]))
    alter(d, "to 4", d.name, (topic, 0, 4))
    m = ShareMember(d, d.name, "m", [topic])
    m.beat("joins")
    m.settle(2)
    alter(d, "with a member", d.name, (topic, 0, 0))
    alter(d, "nothing, with a member", d.name)
    a = sharer(d, "a", topic)
    a.fetch("begins at 4")
    assert a.connection is not None
    a.connection.close()
    m.leave()
    alter(d, "to 1", d.name, (topic, 0, 1))
    sharer(d, "a2", topic).fetch("begins at 1")


@script
def share_offsets_are_deleted(d: Dialogue) -> None:
    """Of a topic the group works on, and of others."""
    topic, other = d.create_topic(partitions=2), d.create_topic("-2")
    none = f"{d.name}-none"
    produce(d, topic, 3)
    delete_offsets(d, "no group id", "", topic)
    delete_offsets(d, "unknown group", d.name, topic)
    delete_offsets(d, "unknown group, no topics", d.name)
    delete_offsets(d, "unknown group and topic", d.name, none)
    alter(d, "makes it", d.name, (topic, 0, 2))
    delete_offsets(d, "no topics", d.name)
    delete_offsets(d, "unknown topic", d.name, none)
    delete_offsets(d, "topic it has not", d.name, other)
    delete_offsets(d, "mixed, one twice", d.name, topic, none, other, topic)
    offsets_of(d, "after", d.name)
    offsets_of(d, "after, by name", d.name, (topic, [0, 1]), (other, [0]))
    delete_offsets(d, "again", d.name, topic)
    m = ShareMember(d, d.name, "m", [topic])
    m.beat("joins")
    m.settle(2)
    delete_offsets(d, "with a member", d.name, topic)
    delete_offsets(d, "no topics, with a member", d.name)
    m.leave()
    delete_offsets(d, "at last", d.name, topic)
    describe_quietly(d, "the group is still there", d.name)


@script
def share_offsets_are_described(d: Dialogue) -> None:
    """Where groups stand, and how far behind, in both versions.

    Not asked: partitions that a topic does not have, of which Kafka never answers.
    """
    topic, other = d.create_topic(partitions=2), d.create_topic("-2")
    none = f"{d.name}-none"
    produce(d, topic, 10)
    offsets_of(d, "unknown group", d.name, (topic, [0]))
    offsets_of(d, "all of an unknown group", d.name)
    offsets_of(d, "no group id", "", (topic, [0]))
    offsets_of(d, "all of no group id", "")
    d.ask("no groups", DescribeShareGroupOffsetsRequest(groups=[]))
    configure(d, d.name, share_auto_offset_reset="earliest")
    m = ShareMember(d, d.name, "m", [topic])
    m.beat("joins")
    m.settle(2)
    offsets_of(d, "before anybody reads", d.name, (topic, [0, 1]))
    a = sharer(d, "a", topic)
    a.fetch("reads")
    a.say("some", (0, 1, [ACCEPT]), (4, 5, [ACCEPT]), (6, 6, [RELEASE]))
    for version in (0, 1):
        offsets_of(d, f"all v{version}", d.name, version=version)
        offsets_of(
            d, f"named v{version}", d.name, (topic, [0, 1]), (none, [0, 1]), (other, [0]),
            version=version,
        )  # fmt: skip
    offsets_of(d, "empty lists", d.name, (topic, []))
    offsets_of(d, "the same partition twice", d.name, (topic, [0, 0]))
    groups = [
        DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None)
        for name in (d.name, f"{d.name}-x", "")
    ]
    d.ask("several groups", DescribeShareGroupOffsetsRequest(groups=groups))
    a.end()
    offsets_of(d, "after its session", d.name, (topic, [0]))
    describe(d, "unknown and none", f"{d.name}-x", "")
    request = ShareGroupDescribeRequest(
        group_ids=[f"{d.name}-x"], include_authorized_operations=True
    )
    d.ask("with operations", request)


@script
def share_member_is_put_out(d: Dialogue) -> None:
    """A group's session timeout."""
    topic = d.create_topic()
    configure(d, d.name, share_session_timeout_ms="1000", share_heartbeat_interval_ms="300")
    m = ShareMember(d, d.name, "m", [topic])
    m.beat("joins")
    d.ask_until(
        "put out",
        ShareGroupDescribeRequest(group_ids=[f"{d.name}"]),
        lambda a: not a.groups[0].members,
    )
    m.beat("beats too late")
