"""A group in the other protocol's terms, and back without loss."""

from dataclasses import replace
from uuid import UUID

import pytest

from broker.controller.images.cluster_image import ClusterImage
from broker.groups.classic.classic_group import ClassicGroup, ClassicMember
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember, MemberState
from broker.groups.migration.conversion import (
    MigrationPolicy,
    assignment_bytes,
    by_topic_id,
    check_upgrade,
    may_downgrade,
    to_classic_group,
    to_consumer_group,
)
from broker.runtime.deadline import Deadline
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.internal.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    encode_assignment,
)
from tests.fakes.broker.offsets_partition import topic_image
from tests.fakes.timer import ManualTimer
from tests.harness.subscriptions import encode_subscription

TOPICS = {name: topic_image(name, number, 4) for number, name in enumerate(("t", "u"), 1)}
IMAGE = replace(
    ClusterImage.empty(),
    topics=TOPICS,
    topics_by_id={topic.topic_id: topic for topic in TOPICS.values()},
)
T, U = (TOPICS[name].topic_id for name in ("t", "u"))
TIMER = ManualTimer()

BOTH = MigrationPolicy.BIDIRECTIONAL


def session(group: ClassicGroup, member_id: str) -> Deadline:
    return Deadline(TIMER, TIMER.clock, lambda: None)


def classic_member(
    name: str,
    partitions: dict[str, tuple[int, ...]],
    *,
    version: int = 3,
    rack: str | None = None,
    instance: str | None = None,
    user_data: bytes | None = None,
) -> ClassicMember:
    made = ClassicMember(
        member_id=name,
        group_instance_id=instance,
        client_id=f"client {name}",
        client_host="/h",
        rebalance_timeout_ms=60_000,
        session_timeout_ms=10_000,
        protocols=(
            ("range", encode_subscription(ConsumerSubscription(version, ("t", "u"), rack=rack))),
            ("roundrobin", encode_subscription(ConsumerSubscription(version, ("t", "u")))),
        ),
        session=session(classic_group(), name),
    )
    made.assignment = encode_assignment(ConsumerAssignment(partitions, user_data), version)
    return made


def classic_group(*members: ClassicMember, generation: int = 5) -> ClassicGroup:
    made = ClassicGroup(
        "g",
        state=ClassicGroupState.STABLE,
        current_state_timestamp_ms=0,
        generation=generation,
        protocol_type="consumer",
        protocol_name="range",
    )
    for member in members:
        made.add(member, None, "consumer")
    return made


def consumer_group() -> ConsumerGroup:
    """Two members, one of them static with a rack."""
    return to_consumer_group(
        classic_group(
            classic_member("a", {"t": (1, 0), "u": (3,)}),
            classic_member("b", {"t": (2, 3)}, instance="i", rack="r", version=1),
        ),
        IMAGE,
    )


def test_a_classic_group_keeps_its_generation_and_assignments() -> None:
    """As epochs, as targets and as what members own, whether they rebalance or not."""
    group = consumer_group()
    assert (group.group_epoch, group.assignment_epoch) == (5, 5)
    assert group.state_name == "Stable"
    a, b = group.members["a"], group.members["b"]
    assert (a.member_epoch, a.previous_member_epoch, a.state) == (5, 5, MemberState.STABLE)
    assert a.assigned == group.target_of("a") == {T: (0, 1), U: (3,)}
    assert group.partition_epoch(T, 2) == 5
    assert a.subscribed_topic_names == {"t", "u"}
    assert (b.instance_id, b.client_id, b.client_host) == ("i", "client b", "/h")
    assert (a.rack_id, b.rack_id) == (None, None)  # version 1 has no rack
    assert a.classic is not None
    assert a.classic.session_timeout_ms == 10_000
    assert [p.name for p in a.classic.supported_protocols] == ["range", "roundrobin"]
    assert group.classic_member_count == 2


def test_there_and_back_is_the_same_group() -> None:
    """But for members' order and user data."""
    group = consumer_group()
    back = to_classic_group(group, group.members, IMAGE, now_ms=7, session=session)
    assert (back.state, back.generation, back.protocol_name) == (
        ClassicGroupState.STABLE,
        5,
        "range",
    )
    assert back.current_state_timestamp_ms == 7
    assert back.leader_id == "a"
    assert back.static_members == {"i": "b"}
    assert back.subscribed_topics == frozenset({"t", "u"})
    for name, partitions, version in (
        ("a", {"t": (0, 1), "u": (3,)}, 3),
        ("b", {"t": (2, 3)}, 1),
    ):
        assert back.members[name].assignment == encode_assignment(
            ConsumerAssignment(partitions), version
        )
    again = to_consumer_group(back, IMAGE)
    assert again.members == group.members
    assert again.target == group.target


def test_a_member_without_an_assignment_owns_nothing() -> None:
    """It has joined and not synced; the whole group may not even have had a generation."""
    member = classic_member("a", {})
    member.assignment = b""
    group = classic_group(member, generation=0)
    group.protocol_name = None
    made = to_consumer_group(group, IMAGE)
    assert made.members["a"].assigned == {}
    assert made.members["a"].subscribed_topic_names == {"t", "u"}


def test_topics_that_are_gone_are_left_out() -> None:
    assert by_topic_id({"gone": (1,), "t": (1, 1, 0), "u": ()}, IMAGE) == {T: (0, 1)}
    assert assignment_bytes({UUID(int=99): (0,), T: (1,)}, IMAGE, 2) == encode_assignment(
        ConsumerAssignment({"t": (1,)}), 2
    )


def test_what_a_custom_assignor_told_members_is_not_lost() -> None:
    """Such a group is not converted; what the clients' own assignors told is of no use."""
    group = classic_group(classic_member("a", {"t": (0,)}, user_data=b"x"))
    assert to_consumer_group(group, IMAGE).members["a"].assigned == {T: (0,)}
    member = classic_member("a", {"t": (0,)}, user_data=b"x")
    member.protocols = (("mine", member.protocols[0][1]),)
    group = classic_group(member)
    group.protocol_name = "mine"
    with pytest.raises(ApiError, match="custom assignor") as refused:
        to_consumer_group(group, IMAGE)
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_members_who_cannot_be_read_stay_classic() -> None:
    member = classic_member("a", {"t": (0,)})
    member.assignment = b"\0"
    with pytest.raises(ApiError, match="malformed"):
        to_consumer_group(classic_group(member), IMAGE)


@pytest.mark.parametrize(
    ("policy", "protocol_type", "max_size", "problem"),
    [
        (MigrationPolicy.DISABLED, "consumer", 10, "online upgrade is disabled"),
        (MigrationPolicy.DOWNGRADE, "consumer", 10, "online upgrade is disabled"),
        (BOTH, "connect", 10, "consumer embedded protocol"),
        (BOTH, "consumer", 0, "exceeds the consumer group maximum size"),
        (BOTH, "consumer", 1, None),
        (MigrationPolicy.UPGRADE, "consumer", 1, None),
    ],
)
def test_which_groups_are_upgraded(
    policy: MigrationPolicy, protocol_type: str, max_size: int, problem: str | None
) -> None:
    """The others do not exist for a member of the new protocol."""
    group = ClassicGroup(
        "g",
        state=ClassicGroupState.STABLE,
        current_state_timestamp_ms=0,
        protocol_type=protocol_type,
    )
    group.add(classic_member("a", {}), None, protocol_type)
    if problem is None:
        check_upgrade(group, policy, max_size)
    else:
        with pytest.raises(ApiError, match=problem) as refused:
            check_upgrade(group, policy, max_size)
        assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("leaving", "policy", "max_size", "expected"),
    [
        (["new"], BOTH, 2, True),
        (["new", "a"], BOTH, 2, True),
        (["new"], MigrationPolicy.DOWNGRADE, 2, True),
        (["new"], MigrationPolicy.UPGRADE, 2, False),
        (["new"], MigrationPolicy.DISABLED, 2, False),
        (["new"], BOTH, 1, False),
        (["a"], BOTH, 2, False),
        (["new", "a", "b"], BOTH, 2, False),
    ],
)
def test_which_groups_are_downgraded(
    leaving: list[str], policy: MigrationPolicy, max_size: int, expected: bool
) -> None:
    """Those in which nobody is left who speaks the new protocol, but somebody who does not."""
    group = consumer_group()
    group.update_member(ConsumerGroupMember("new", member_epoch=5))
    assert may_downgrade(group, leaving, policy, max_size=max_size) is expected
