"""Counts that a group keeps of its members, and its records."""

from typing import Any
from uuid import UUID

from broker.groups.consumer.consumer_group import ConsumerGroup, ResolvedRegularExpression
from broker.groups.consumer.member import ConsumerGroupMember, MemberState
from broker.groups.state.group import GroupType
from protocol.error_codes import ErrorCode
from protocol.internal.consumer_group_records import ClassicMemberMetadata, ClassicProtocolMetadata
from protocol.internal.consumer_offsets import decode_key

A = UUID(int=1)
CLASSIC = ClassicMemberMetadata(10_000, (ClassicProtocolMetadata("range", b"x"),))


def member(name: str, *topics: str, **fields: Any) -> ConsumerGroupMember:
    made = ConsumerGroupMember(name, subscribed_topic_names=frozenset(topics))
    return made._replace(**fields)


def test_counts_follow_members() -> None:
    group = ConsumerGroup("g")
    group.update_member(member("m1", "a", "b", server_assignor="range", instance_id="i1"))
    group.update_member(member("m2", "b", subscribed_topic_regex="x.*", classic=CLASSIC))
    assert group.name_counts == {"a": 1, "b": 2}
    assert group.regex_counts == {"x.*": 1}
    assert group.assignor_counts == {"range": 1}
    assert (group.classic_member_count, group.classic_protocol_counts) == (1, {"range": 1})
    group.update_member(member("m1", "b", server_assignor="uniform", instance_id="i1"))
    assert group.name_counts == {"b": 2}
    assert group.preferred_assignor("none") == "uniform"
    group.update_member(member("m2", "b"))
    assert (group.regex_counts, group.classic_member_count) == ({}, 0)
    for name in ("m1", "m2", "m3"):
        group.remove_member(name)
    assert group.is_empty
    assert group.name_counts == group.assignor_counts == {}
    assert group.static_members == {}
    assert not group.classic_protocol_counts
    assert group.preferred_assignor("none") == "none"


def test_topics_of_names_and_patterns() -> None:
    group = ConsumerGroup("g")
    one = member("m1", "a", subscribed_topic_regex="x.*")
    group.update_member(one)
    assert group.topics_of(one) == {"a"}
    version = group.topics_version
    group.update_resolved("x.*", ResolvedRegularExpression(frozenset({"a", "x1"}), 3, 4))
    assert group.topics_version == version + 1, "a was subscribed to already"
    assert group.topics_of(one) == {"a", "x1"}
    assert list(group.subscribed_topics()) == ["a", "x1"]
    assert group.is_subscribed_to("x1")
    group.update_resolved("x.*", ResolvedRegularExpression(frozenset({"x2"}), 3, 4))
    assert group.regex_topic_counts == {"x2": 1}
    group.update_resolved("x.*", None)
    assert group.topics_of(one) == {"a"}
    assert not group.is_subscribed_to("x2")


def test_partition_epochs_follow_what_members_own() -> None:
    group = ConsumerGroup("g")
    group.update_member(member("m1", member_epoch=3, assigned={A: (1, 2)}))
    assert [group.partition_epoch(A, p) for p in range(3)] == [-1, 3, 3]
    group.update_member(
        member("m1", member_epoch=4, assigned={A: (1,)}, pending_revocation={A: (2,)})
    )
    assert [group.partition_epoch(A, p) for p in range(3)] == [-1, 4, 4]
    group.update_member(member("m1", member_epoch=5, assigned={A: (1,)}))
    assert [group.partition_epoch(A, p) for p in range(3)] == [-1, 5, -1]
    group.remove_member("m1")
    assert not group.partition_epochs


def test_states() -> None:
    group = ConsumerGroup("g")
    assert (group.type, group.state_name, group.protocol_type) == (
        GroupType.CONSUMER,
        "Empty",
        "consumer",
    )
    group.group_epoch = 1
    group.update_member(member("m1"))
    assert group.state_name == "Assigning"
    group.assignment_epoch = 1
    assert group.state_name == "Reconciling"
    group.update_member(member("m1", member_epoch=1, state=MemberState.UNRELEASED_PARTITIONS))
    assert group.state_name == "Reconciling"
    group.update_member(member("m1", member_epoch=1))
    assert (group.state_name, group.member_count, group.generation_or_epoch) == ("Stable", 1, 1)
    group.die(0)
    assert group.state_name == "Dead"


def test_classic_members_commit_in_generations() -> None:
    group = ConsumerGroup("g")
    group.update_member(member("m1", member_epoch=3, classic=CLASSIC))

    def code(epoch: int) -> ErrorCode:
        return group.validate_offset_commit("m1", None, epoch, transactional=False, api_version=8)

    assert (code(3), code(2)) == (ErrorCode.NONE, ErrorCode.ILLEGAL_GENERATION)
    assert group.validate_offset_fetch("m1", 2) is ErrorCode.ILLEGAL_GENERATION


def test_tombstones_of_everything() -> None:
    group = ConsumerGroup("g")
    group.update_member(member("m1"))
    group.target["m1"] = {}
    group.update_resolved("x.*", ResolvedRegularExpression(frozenset(), 0, 0))
    keys = [key for key, value in group.tombstones() if value is None]
    versions = [int.from_bytes(key[:2], "big") for key in keys]
    assert versions == [8, 7, 6, 5, 16, 4, 3]
    assert all(decode_key(key) is not None for key in keys)
