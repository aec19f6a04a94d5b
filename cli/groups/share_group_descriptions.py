"""Descriptions of share groups: members, assignments, start offsets, lag.

Several members may work on one partition, so an offset belongs to no member in particular. The lag
is the broker's own: it knows which records above the start offset are done already.
"""

from typing import Any

from cli.connection import check_answer
from cli.groups.group_answers import by_topic, coordinator_of, sorted_members
from cli.groups.group_description import GroupDescription, MemberDescription, OffsetDescription
from protocol.error_codes import ErrorCode

NOWHERE = -1
"""Start offset of a partition that was never read, and an unknown lag."""


def describe_share_group(admin: Any, group: str) -> GroupDescription | None:
    """Gather what there is to know; None when there is no such share group.

    Raises:
        CommandError: The broker refuses.
    """
    answer = _answer(admin, group)
    if answer is None or answer["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    check_answer(f"group {group!r}", answer["error_code"], answer["error_message"])
    return GroupDescription(
        group=group,
        state=answer["group_state"],
        protocol_type="share",
        protocol=answer["assignor_name"],
        coordinator=coordinator_of(admin, group),
        members=sorted_members(map(_member, answer["members"])),
        offsets=_offsets(admin, group),
        type="share",
        epoch=answer["group_epoch"],
        target_epoch=answer["assignment_epoch"],
    )


def _answer(admin: Any, group: str) -> dict[str, Any] | None:
    """What ShareGroupDescribe says; None if the broker does not know it, or has it switched off."""
    from cli.admin.kafka_library import KafkaError

    try:
        answer: dict[str, Any] = admin.describe_share_groups([group])[group]
    except KafkaError as error:
        if type(error).__name__ not in ("UnsupportedVersionError", "IncompatibleBrokerVersion"):
            raise
        return None
    return None if answer["error_code"] == ErrorCode.UNSUPPORTED_VERSION else answer


def _member(answer: dict[str, Any]) -> MemberDescription:
    return MemberDescription(
        member_id=answer["member_id"],
        instance_id=None,
        client_id=answer["client_id"],
        host=answer["client_host"].removeprefix("/"),
        assignment=by_topic(answer["assignment"]["topic_partitions"], "topic_name"),
        epoch=answer["member_epoch"],
        protocol="share",
    )


def _offsets(admin: Any, group: str) -> tuple[OffsetDescription, ...]:
    answer = admin.share_group_offsets(group)
    check_answer(f"group {group!r}", answer["error_code"], answer["error_message"])
    return tuple(
        OffsetDescription(
            topic=topic["topic_name"],
            partition=at["partition_index"],
            committed=_known(at["start_offset"]),
            end_offset=None,
            lag=_known(at.get("lag", NOWHERE)),
            client_id=None,
            member_id=None,
        )
        for topic in sorted(answer["topics"], key=lambda one: str(one["topic_name"]))
        for at in sorted(topic["partitions"], key=lambda one: int(one["partition_index"]))
        if at["error_code"] == 0
    )


def _known(number: int) -> int | None:
    return None if number == NOWHERE else number
