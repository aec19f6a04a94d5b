"""Members as values and as records."""

from uuid import UUID

from broker.groups.consumer.member import ConsumerGroupMember, MemberState
from protocol.internal.consumer_group_records import ClassicMemberMetadata, ClassicProtocolMetadata


def test_member_survives_its_records() -> None:
    member = ConsumerGroupMember(
        "m",
        member_epoch=7,
        previous_member_epoch=6,
        instance_id="i",
        rack_id="r",
        rebalance_timeout_ms=5,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=frozenset({"b", "a"}),
        subscribed_topic_regex="x",
        server_assignor="range",
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned={UUID(int=1): (1, 2)},
        pending_revocation={UUID(int=2): (3,)},
        classic=ClassicMemberMetadata(9, (ClassicProtocolMetadata("range", b"m"),)),
    )
    read = ConsumerGroupMember("m").with_metadata(member.metadata_value())
    assert read.with_current(member.current_value()) == member
    assert member.uses_classic_protocol


def test_states_of_newer_brokers_are_unknown() -> None:
    assert MemberState.of(1) is MemberState.UNREVOKED_PARTITIONS
    assert MemberState.of(5) is MemberState.UNKNOWN


def test_reconciled_is_stable_in_the_epoch() -> None:
    member = ConsumerGroupMember("m", 3)
    assert member.is_reconciled_to(3)
    assert not member.is_reconciled_to(4)
    assert not member._replace(state=MemberState.UNRELEASED_PARTITIONS).is_reconciled_to(3)
    moved = member.with_epoch(4)
    assert (moved.member_epoch, moved.previous_member_epoch) == (4, 3)
