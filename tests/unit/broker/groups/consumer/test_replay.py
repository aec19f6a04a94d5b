"""Groups from records that come in any order, and with some missing."""

from random import Random

import pytest

from broker.groups.consumer.changes import Changes, resolved_record
from broker.groups.consumer.consumer_group import ConsumerGroup, ResolvedRegularExpression
from broker.groups.consumer.member import ConsumerGroupMember, MemberState
from broker.groups.consumer.replay import ConsumerGroupReplay, decode
from protocol.errors import DecodeError
from protocol.internal import consumer_group_records as r
from protocol.internal.consumer_offsets import decode_key
from tests.harness.consumer_groups import FOO, ConsumerHarness, comparable


def changed() -> Changes:
    changes = Changes(ConsumerGroup("g"))
    first = ConsumerGroupMember("m1", instance_id="i", subscribed_topic_names=frozenset({"foo"}))
    changes.put_member(first)
    changes.put_member(ConsumerGroupMember("m2", subscribed_topic_regex="x"))
    changes.set_epoch(3, -5)
    changes.set_target("m1", {FOO: (1, 2)})
    changes.set_target("m2", {})
    changes.set_assignment_epoch(2)
    resolved = ResolvedRegularExpression(frozenset({"x1", "x2"}), 7, 8)
    changes.set_resolved("x", resolved, resolved_record("g", "x", resolved))
    changes.put_current(
        first._replace(
            member_epoch=2,
            previous_member_epoch=1,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned={FOO: (1,)},
            pending_revocation={FOO: (4, 5)},
        )
    )
    return changes


@pytest.mark.parametrize("seed", range(5))
def test_order_does_not_matter(seed: int) -> None:
    changes = changed()
    latest = dict(changes.records)
    keys = list(latest)
    Random(seed).shuffle(keys)
    replay = ConsumerGroupReplay()
    for raw in keys:
        key, value = decode_key(raw), latest[raw]
        assert isinstance(key, r.ConsumerGroupKey)
        assert value is not None
        replay.add(key, decode(key, value))
    list(replay.finish())
    assert comparable(replay.groups["g"]) == comparable(changes.group)


def test_members_without_metadata_are_left_out() -> None:
    replay = ConsumerGroupReplay()
    current = r.ConsumerGroupCurrentMemberAssignmentValue(1, 0, 0, {FOO: (1,)}, {})
    key = r.ConsumerGroupCurrentMemberAssignmentKey("g", "m")
    raw = r.encode_consumer_group_current_member_assignment_value(current)
    replay.add(key, decode(key, raw))
    list(replay.finish())
    assert not replay.groups


def test_old_partition_metadata_is_remembered() -> None:
    replay = ConsumerGroupReplay()
    key = r.ConsumerGroupPartitionMetadataKey("g")
    replay.add(key, decode(key, b"anything"))
    assert replay.groups["g"].has_partition_metadata_record


def test_damaged_records_are_refused() -> None:
    with pytest.raises(DecodeError):
        decode(r.ConsumerGroupMetadataKey("g"), b"\x00\x00")


def test_whole_group_written_at_once_reads_back() -> None:
    h = ConsumerHarness()
    h.enter("m1", instance="i1")
    h.enter("m2")
    group = h.consumer_group()
    changes = Changes(group)
    changes.put_everything()
    replay = ConsumerGroupReplay()
    for raw, value in changes.records:
        key = decode_key(raw)
        assert isinstance(key, r.ConsumerGroupKey)
        assert value is not None
        replay.add(key, decode(key, value))
    list(replay.finish())
    assert comparable(replay.groups["g"]) == comparable(group)
