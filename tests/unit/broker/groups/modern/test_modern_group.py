"""What consumer groups and share groups have in common: members, subscriptions, target, records."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.modern.modern_group import ModernGroup, change_count
from broker.groups.share.member import ShareGroupMember
from broker.groups.share.share_group import ShareGroup
from protocol.internal.consumer_offsets import decode_key

A = UUID(int=1)

Made = tuple[ModernGroup[Any], Callable[..., Any]]


@pytest.fixture(params=["consumer", "share"])
def made(request: pytest.FixtureRequest) -> Made:
    """An empty group, and what makes a member of it."""
    if request.param == "consumer":
        return ConsumerGroup("g"), ConsumerGroupMember
    return ShareGroup("g"), ShareGroupMember


def test_topics_are_counted_by_member(made: Made) -> None:
    """The version grows when a topic comes or goes, not when a second member subscribes."""
    group, member = made
    group.update_member(member("m1", subscribed_topic_names=frozenset({"a", "b"})))
    assert (group.name_counts, group.topics_version) == ({"a": 1, "b": 1}, 2)
    group.update_member(member("m2", subscribed_topic_names=frozenset({"b"})))
    assert (group.name_counts, group.topics_version) == ({"a": 1, "b": 2}, 2)
    group.update_member(member("m1", subscribed_topic_names=frozenset({"b"})))
    assert (group.name_counts, group.topics_version) == ({"b": 2}, 3)
    assert list(group.subscribed_topics()) == ["b"]
    for member_id in ("m1", "m2", "absent"):
        group.remove_member(member_id)
    assert (group.name_counts, group.topics_version) == ({}, 4)
    assert group.is_empty


def test_target_stays_when_a_member_is_removed(made: Made) -> None:
    """Its tombstone is a change of its own."""
    group, member = made
    group.update_member(member("m"))
    group.update_target("m", {A: (0,)})
    group.remove_member("m")
    assert group.target_of("m") == {A: (0,)}
    assert group.target_of("other") == {}


def test_tombstones_end_with_the_group(made: Made) -> None:
    """Kafka reads them in this order: what members own, targets, members, group."""
    group, member = made
    group.update_member(member("m"))
    group.update_target("m", {A: (0,)})
    group.update_target("gone", {})
    tombstones = group.tombstones()
    assert all(value is None for _, value in tombstones)
    names = [type(decode_key(key)).__name__ for key, _ in tombstones]
    kind = "ConsumerGroup" if isinstance(group, ConsumerGroup) else "ShareGroup"
    further = "PartitionMetadata" if kind == "ConsumerGroup" else "StatePartitionMetadata"
    assert names == [
        f"{kind}CurrentMemberAssignmentKey",
        f"{kind}TargetAssignmentMemberKey",
        f"{kind}TargetAssignmentMemberKey",
        f"{kind}TargetAssignmentMetadataKey",
        f"{kind}MemberMetadataKey",
        f"{kind}{further}Key",
        f"{kind}MetadataKey",
    ]


def test_dead_group_says_so(made: Made) -> None:
    group, _ = made
    group.die(0)
    assert (group.is_dead, group.state_name) == (True, "Dead")


def test_count_of_zero_is_removed() -> None:
    counts: dict[str, int] = {}
    change_count(counts, "a", 2)
    change_count(counts, "a", -1)
    assert counts == {"a": 1}
    change_count(counts, "a", -1)
    change_count(counts, "b", 0)
    assert counts == {}
