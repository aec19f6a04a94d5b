"""Descriptions of groups: members, assignments, offsets, lag.

Groups of all protocols: what DescribeGroups calls dead may be a group of KIP-848, which only
ConsumerGroupDescribe knows, or a share group (`share_group_descriptions`).

The group comes from its coordinator, the end offsets from the leaders of the partitions; the
answers are not of one moment, so a lag may be a little off, but it is never shown below 0.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from cli.connection import CommandError, check_answer
from cli.groups.group_answers import by_topic, coordinator_of, sorted_members
from cli.groups.group_description import GroupDescription, MemberDescription, OffsetDescription
from cli.groups.share_group_descriptions import describe_share_group
from protocol.error_codes import ErrorCode


def describe_group(admin: Any, group: str) -> GroupDescription:
    """Gather what there is to know.

    Raises:
        CommandError: There is no such group.
    """
    answer = admin.describe_groups([group])[group]
    if answer["group_state"] == "Dead":
        # An unknown group is described as dead; from version 6 with an error beside it (KIP-1043).
        return _describe_newer_group(admin, group)
    if answer["error"] is not None:
        raise CommandError(f"group {group!r}: {answer['error']}")
    members = tuple(map(_member, answer["members"]))
    return GroupDescription(
        group=group,
        state=answer["group_state"],
        protocol_type=answer["protocol_type"],
        protocol=answer["protocol_data"],
        coordinator=coordinator_of(admin, group),
        members=sorted_members(members),
        offsets=_offsets(admin, group, members),
    )


def group_states(admin: Any, groups: Sequence[str]) -> dict[str, str]:
    """State of each group; an unknown one is Dead."""
    if not groups:
        return {}
    states = {
        group: str(answer["group_state"]) for group, answer in admin.describe_groups(groups).items()
    }
    # Of the new protocol, perhaps.
    dead = [group for group, state in states.items() if state == "Dead"]
    for group, answer in _consumer_answers(admin, dead).items():
        if answer["error_code"] == 0:
            states[group] = answer["group_state"]
    return states


def _consumer_answers(admin: Any, groups: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What ConsumerGroupDescribe says; nothing if the broker does not know it."""
    from cli.admin.kafka_library import KafkaError

    if not groups:
        return {}
    try:
        answers: dict[str, dict[str, Any]] = admin.describe_consumer_groups(groups)
    except KafkaError as error:
        if type(error).__name__ not in ("UnsupportedVersionError", "IncompatibleBrokerVersion"):
            raise
        return {}
    return answers


def _describe_newer_group(admin: Any, group: str) -> GroupDescription:
    answer = _consumer_answers(admin, [group]).get(group)
    if answer is None or answer["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND:
        shared = describe_share_group(admin, group)
        if shared is None:
            raise CommandError(f"group {group!r} does not exist")
        return shared
    check_answer(f"group {group!r}", answer["error_code"], answer["error_message"])
    members = tuple(map(_consumer_member, answer["members"]))
    return GroupDescription(
        group=group,
        state=answer["group_state"],
        protocol_type="consumer",
        protocol=answer["assignor_name"],
        coordinator=coordinator_of(admin, group),
        members=sorted_members(members),
        offsets=_offsets(admin, group, members),
        type="consumer",
        epoch=answer["group_epoch"],
        target_epoch=answer["assignment_epoch"],
    )


def _member(answer: dict[str, Any]) -> MemberDescription:
    # Without an assignment yet, or with one that is not a consumer's, there is no mapping.
    assignment = answer["member_assignment"]
    topics = assignment["assigned_partitions"] if isinstance(assignment, dict) else ()
    return MemberDescription(
        member_id=answer["member_id"],
        instance_id=answer.get("group_instance_id"),
        client_id=answer["client_id"],
        # Kafka writes an address with the slash of Java's InetAddress.
        host=answer["client_host"].removeprefix("/"),
        assignment=by_topic(topics, "topic"),
    )


_MEMBER_TYPES = {0: "classic", 1: "consumer"}


def _consumer_member(answer: dict[str, Any]) -> MemberDescription:
    return MemberDescription(
        member_id=answer["member_id"],
        instance_id=answer["instance_id"],
        client_id=answer["client_id"],
        host=answer["client_host"].removeprefix("/"),
        assignment=by_topic(answer["assignment"]["topic_partitions"], "topic_name"),
        target=by_topic(answer["target_assignment"]["topic_partitions"], "topic_name"),
        epoch=answer["member_epoch"],
        protocol=_MEMBER_TYPES.get(answer.get("member_type", -1)),
    )


def _offsets(
    admin: Any, group: str, members: Iterable[MemberDescription]
) -> tuple[OffsetDescription, ...]:
    from cli.admin.kafka_library import TopicPartition

    committed = {
        at: found.offset
        for at, found in admin.list_group_offsets({group: None})[group].items()
        if found.offset >= 0
    }
    owners = {
        TopicPartition(topic, partition): member
        for member in members
        for topic, held in member.assignment.items()
        for partition in held
    }
    partitions = sorted(committed.keys() | owners.keys())
    ends = end_offsets(admin, partitions)
    found = []
    for at in partitions:
        offset, end, owner = committed.get(at), ends.get(at), owners.get(at)
        found.append(
            OffsetDescription(
                topic=at.topic,
                partition=at.partition,
                committed=offset,
                end_offset=end,
                lag=None if offset is None or end is None else max(0, end - offset),
                client_id=None if owner is None else owner.client_id,
                member_id=None if owner is None else owner.member_id,
            )
        )
    return tuple(found)


def end_offsets(admin: Any, partitions: Iterable[Any]) -> dict[Any, int]:
    """End offset of those partitions that are there and have a leader."""
    from cli.admin.kafka_library import OffsetSpec

    led = led_partitions(admin, {at.topic for at in partitions})
    asked = [at for at in partitions if at in led]
    if not asked:
        return {}
    answer = admin.list_partition_offsets(dict.fromkeys(asked, OffsetSpec.LATEST))
    return {at: found.offset for at, found in answer.items()}


def led_partitions(admin: Any, topics: Iterable[str]) -> set[Any]:
    """Those partitions of the topics that have a leader to ask."""
    from cli.admin.kafka_library import TopicPartition

    names = sorted(topics)
    if not names:
        # No names would mean: all topics.
        return set()
    return {
        TopicPartition(topic["name"], partition["partition_index"])
        for topic in admin.describe_topics(names)
        for partition in topic["partitions"]
        if partition["leader_id"] >= 0
    }
