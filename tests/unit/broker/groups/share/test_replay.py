"""Share groups from records that come in any order, and with some missing."""

from random import Random

import pytest

from broker.groups.share.changes import ShareChanges
from broker.groups.share.kept_state import KeptState, TopicPartitions
from broker.groups.share.member import ShareGroupMember
from broker.groups.share.replay import ShareGroupReplay
from broker.groups.share.share_group import ShareGroup
from protocol.errors import DecodeError
from protocol.internal import share_group_records as r
from protocol.internal.consumer_offsets import decode_key
from tests.harness.share_groups import BAR, FOO, comparable


def changed() -> ShareChanges:
    changes = ShareChanges(ShareGroup("g"))
    first = ShareGroupMember("m1", rack_id="r", subscribed_topic_names=frozenset({"foo"}))
    changes.put_member(first)
    changes.put_member(ShareGroupMember("m2", subscribed_topic_names=frozenset({"bar", "foo"})))
    changes.set_epoch(3, -5)
    changes.set_target("m1", {FOO: (1, 2)})
    changes.set_target("m2", {})
    changes.set_assignment_epoch(2)
    changes.set_kept(
        KeptState(
            {FOO: TopicPartitions("foo", frozenset({3}))},
            {FOO: TopicPartitions("foo", frozenset({1, 2}))},
            {BAR: "bar"},
        )
    )
    changes.put_current(
        first._replace(member_epoch=2, previous_member_epoch=1, assigned={FOO: (1,)})
    )
    return changes


@pytest.mark.parametrize("seed", range(5))
def test_order_does_not_matter(seed: int) -> None:
    changes = changed()
    latest = dict(changes.records)
    keys = list(latest)
    Random(seed).shuffle(keys)
    replay = ShareGroupReplay()
    for raw in keys:
        key, value = decode_key(raw), latest[raw]
        assert isinstance(key, r.ShareGroupKey)
        assert value is not None
        replay.add(key, value)
    list(replay.finish())
    assert comparable(replay.groups["g"]) == comparable(changes.group)


def test_tombstones_name_every_key() -> None:
    changes = changed()
    assert {key for key, _ in changes.group.tombstones()} >= {key for key, _ in changes.records}
    assert all(value is None for _, value in changes.group.tombstones())


def test_members_without_metadata_are_left_out() -> None:
    replay = ShareGroupReplay()
    current = r.ShareGroupCurrentMemberAssignmentValue(1, 0, 0, {FOO: (1,)})
    replay.add(
        r.ShareGroupCurrentMemberAssignmentKey("g", "m"),
        r.encode_share_group_current_member_assignment_value(current),
    )
    list(replay.finish())
    assert not replay.groups


def test_damaged_values_are_told() -> None:
    with pytest.raises(DecodeError):
        ShareGroupReplay().add(r.ShareGroupMetadataKey("g"), b"\0\0\0")


def test_a_member_that_leaves_takes_its_records_along() -> None:
    changes = changed()
    changes.remove_member("m1")
    latest = dict(changes.records)
    assert sum(value is None for value in latest.values()) == 3
    assert changes.group.target == {"m2": {}}
    assert changes.group.name_counts == {"foo": 1, "bar": 1}
