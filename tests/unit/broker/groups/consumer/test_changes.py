"""Each change makes the record that says so, in the order that Kafka needs."""

from broker.groups.consumer.changes import Changes
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember
from protocol.internal.consumer_offsets import decode_key
from tests.harness.consumer_groups import FOO


def kinds(changes: Changes) -> list[tuple[int, bool]]:
    """Key versions, and whether there is a value."""
    assert all(decode_key(key) is not None for key, _ in changes.records)
    return [(int.from_bytes(key[:2], "big"), v is not None) for key, v in changes.records]


def test_member_leaves_before_its_metadata() -> None:
    group = ConsumerGroup("g")
    changes = Changes(group)
    changes.put_member(ConsumerGroupMember("m"))
    changes.set_target("m", {FOO: (1,)})
    changes.remove_member("m")
    assert kinds(changes) == [(5, True), (7, True), (8, False), (7, False), (5, False)]
    assert group.is_empty
    assert not group.target


def test_successor_gets_the_target() -> None:
    group = ConsumerGroup("g")
    old = ConsumerGroupMember("old", 4, 3, instance_id="i", assigned={FOO: (1,)})
    changes = Changes(group)
    changes.put_member(old)
    changes.set_target("old", {FOO: (1, 2)})
    changes.records.clear()
    changes.replace_member(old, old._replace(member_id="new", member_epoch=0))
    assert kinds(changes) == [
        (8, False),
        (7, False),
        (5, False),
        (5, True),
        (7, True),
        (8, True),
    ]
    assert group.target == {"new": {FOO: (1, 2)}}
    assert group.static_members == {"i": "new"}
    assert group.partition_epoch(FOO, 1) == 0


def test_old_partition_metadata_is_deleted() -> None:
    group = ConsumerGroup("g")
    group.has_partition_metadata_record = True
    changes = Changes(group)
    changes.remove_partition_metadata()
    assert kinds(changes) == [(4, False)]
    assert not group.has_partition_metadata_record


def test_resolved_patterns_come_and_go() -> None:
    group = ConsumerGroup("g")
    changes = Changes(group)
    changes.remove_resolved("x")
    assert kinds(changes) == [(16, False)]
