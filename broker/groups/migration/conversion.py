"""Conversion of a classic group with members into a consumer group, and back (KIP-848).

                       a KIP-848 member joins
    ClassicGroup  ─────────────────────────────────>  ConsumerGroup, some members still classic
       of            <─────────────────────────────
    consumers          the last KIP-848 member leaves

    classic                          consumer
    generation                       group epoch, assignment epoch, epoch of every member
    assignment of the leader         target, and assignment of every member
    JoinGroup's protocols            `ClassicMemberMetadata`
    session timeout                  the same
    subscription's topics, rack      the same

`group.consumer.migration.policy` says which conversions are allowed. A group without members can
always be converted.

User data of an assignor that is not one of the clients' own would be lost, so such a group stays
classic. Kafka checks for any user data, and so refuses librdkafka's members with
`cooperative-sticky` once they have rebalanced twice: that client returns in assignments the user
data of members' subscriptions, which no client needs.

The functions here make the other group from their arguments, and change nothing.

Source: Kafka, ConsumerGroup.fromClassicGroup, ClassicGroup.fromConsumerGroup,
GroupMetadataManager.java (validateOnlineUpgrade, validateOnlineDowngradeWithFencedMembers).
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.groups.classic.classic_group import ClassicGroup, ClassicMember, Protocols
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.modern.assignment import Assignment
from broker.runtime.deadline import Deadline
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.internal.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocolMetadata,
)
from protocol.internal.consumer_protocol import (
    ConsumerAssignment,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    message_version,
)
from protocol.internal.consumer_subscription import PROTOCOL_TYPE

OWN_ASSIGNORS: Final = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
"""Assignors of the clients themselves: only they read their own user data."""

PROTOCOLS_SIZE_MAX: Final = 256 * 1024
"""Bytes of a classic member's metadata of all protocols: they are one record, with its
subscription, and a record that the log refuses costs the whole shard a reload."""


class MigrationPolicy(StrEnum):
    """Values of `group.consumer.migration.policy`."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group with members may become a consumer group."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        """Whether a consumer group with members may become a classic group."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


# -- classic to consumer --


def check_upgrade(group: ClassicGroup, policy: MigrationPolicy, max_size: int) -> None:
    """Refuse a classic group that cannot become a consumer group.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND, with Kafka's message: for the joining member there is no
            consumer group of this name.
    """
    if not policy.allows_upgrade:
        raise _no_upgrade(group, "online upgrade is disabled")
    if not group.uses_consumer_protocol:
        raise _no_upgrade(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > max_size:
        raise _no_upgrade(group, "the group size exceeds the consumer group maximum size")


def to_consumer_group(group: ClassicGroup, image: ClusterImage) -> ConsumerGroup:
    """The consumer group that `group` would be; its metadata hash is still to be computed.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND when members' metadata cannot be read, or an assignment has
            user data, which would be lost.
    """
    epoch = group.generation
    made = ConsumerGroup(group.group_id)
    made.group_epoch = made.assignment_epoch = epoch
    # A group that never had a generation has not chosen its protocol yet.
    protocol_name = group.protocol_name or group.select_protocol()
    for member in group.members.values():
        if not fits_into_record(member.protocols):
            raise _no_upgrade(group, "the metadata of a member is too large")
        try:
            subscription = decode_subscription(member.metadata(protocol_name))
            assignment = decode_assignment(member.assignment)
        except DecodeError:
            raise _no_upgrade(group, "the embedded consumer protocol is malformed") from None
        if assignment.user_data and protocol_name not in OWN_ASSIGNORS:
            raise _no_upgrade(
                group,
                "an unsupported custom assignor is in use. Please refer to the documentation or "
                "switch to a default assignor before re-attempting the upgrade",
            )
        owned = by_topic_id(assignment.partitions, image)
        made.update_member(
            ConsumerGroupMember(
                member_id=member.member_id,
                member_epoch=epoch,
                previous_member_epoch=epoch,
                instance_id=member.group_instance_id,
                rack_id=subscription.rack,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=frozenset(subscription.topics),
                subscribed_topic_regex="",
                assigned=owned,
                classic=classic_metadata(member.session_timeout_ms, member.protocols),
            )
        )
        made.target[member.member_id] = owned
    return made


def classic_metadata(session_timeout_ms: int, protocols: Protocols) -> ClassicMemberMetadata:
    """Metadata of a classic member in a consumer group."""
    return ClassicMemberMetadata(
        session_timeout_ms,
        tuple(ClassicProtocolMetadata(name, metadata) for name, metadata in protocols),
    )


def fits_into_record(protocols: Protocols) -> bool:
    """Whether a record has room for a classic member's metadata."""
    return sum(len(name) + len(metadata) for name, metadata in protocols) <= PROTOCOLS_SIZE_MAX


def _no_upgrade(group: ClassicGroup, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}.",
    )


# -- consumer to classic --


def may_downgrade(
    group: ConsumerGroup,
    leaving: Iterable[str],
    policy: MigrationPolicy,
    *,
    max_size: int,
    joining: int = 0,
) -> bool:
    """Whether the group becomes a classic one when `leaving` are gone.

    Args:
        group: The group, with the leaving members.
        leaving: Member ids.
        policy: Which conversions are allowed.
        max_size: Of a classic group.
        joining: How many classic members join instead.
    """
    if not policy.allows_downgrade:
        return False
    gone = [group.members[member_id] for member_id in leaving]
    staying = len(group.members) - len(gone)
    classic = group.classic_member_count - sum(member.uses_classic_protocol for member in gone)
    return classic == staying and 0 < staying + joining <= max_size


def to_classic_group(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerGroupMember],
    image: ClusterImage,
    *,
    now_ms: int,
    session: Callable[[ClassicGroup, str], Deadline],
) -> ClassicGroup:
    """The classic group that `group` would be, Stable in the group epoch.

    Args:
        group: The group; its targets become the assignments.
        members: Its members, all of them classic, by the id of their target in `group`.
        image: Has the topics' names.
        now_ms: When it becomes Stable.
        session: Makes the session timer of a member.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND when members' metadata cannot be read.
    """
    made = ClassicGroup(
        group.group_id,
        state=ClassicGroupState.STABLE,
        current_state_timestamp_ms=now_ms,
        generation=group.group_epoch,
        protocol_type=PROTOCOL_TYPE,
    )
    for member in members.values():
        assert member.classic is not None
        made.add(
            ClassicMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.classic.session_timeout_ms,
                protocols=tuple(member.classic.supported_protocols),
                session=session(made, member.member_id),
            ),
            None,
            PROTOCOL_TYPE,
        )
    made.protocol_name = made.select_protocol()
    made.subscribed_topics = made.compute_subscribed_topics()
    for target_id, member in members.items():
        one = made.members[member.member_id]
        try:
            version = message_version(one.metadata(made.protocol_name))
        except DecodeError:
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot downgrade the classic group {group.group_id}: malformed protocol.",
            ) from None
        one.assignment = assignment_bytes(group.target_of(target_id), image, version)
    return made


# -- partitions --


def by_topic_id(partitions: Mapping[str, tuple[int, ...]], image: ClusterImage) -> Assignment:
    """Partitions of topics by id, those of topics that are gone left out."""
    found: dict[UUID, tuple[int, ...]] = {}
    for name, numbers in partitions.items():
        topic = image.topics.get(name)
        if topic is not None and numbers:
            found[topic.topic_id] = tuple(sorted(set(numbers)))
    return found


def assignment_bytes(assignment: Assignment, image: ClusterImage, version: int) -> bytes:
    """An assignment as a classic member reads it; topics that are gone are left out."""
    named = {
        image.topics_by_id[topic_id].name: partitions
        for topic_id, partitions in assignment.items()
        if topic_id in image.topics_by_id
    }
    return encode_assignment(ConsumerAssignment(dict(sorted(named.items()))), version)
