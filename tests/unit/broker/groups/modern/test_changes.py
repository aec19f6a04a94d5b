"""A change alters the group and makes the record that says so, in either kind of group."""

from typing import Any
from uuid import UUID

import pytest

from broker.groups.consumer.changes import Changes
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.consumer.replay import ConsumerGroupReplay, decode
from broker.groups.modern.changes import ModernChanges
from broker.groups.share.changes import ShareChanges
from broker.groups.share.member import ShareGroupMember
from broker.groups.share.replay import ShareGroupReplay
from broker.groups.share.share_group import ShareGroup
from protocol.internal.consumer_group_records import ConsumerGroupKey
from protocol.internal.consumer_offsets import decode_key
from protocol.internal.share_group_records import ShareGroupKey

A = UUID(int=1)

VERSIONS = {"consumer": [5, 3, 7, 6, 8], "share": [10, 11, 13, 12, 14]}
"""Key versions of member, group, target, target epoch, current assignment."""


def changes_of(kind: str) -> tuple[ModernChanges[Any, Any], Any]:
    if kind == "consumer":
        return Changes(ConsumerGroup("g")), ConsumerGroupMember("m")
    return ShareChanges(ShareGroup("g")), ShareGroupMember("m")


def replayed(changes: ModernChanges[Any, Any]) -> Any:
    """The group that the records describe."""
    consumers, shares = ConsumerGroupReplay(), ShareGroupReplay()
    for raw, value in changes.records:
        key = decode_key(raw)
        assert value is not None
        if isinstance(key, ConsumerGroupKey):
            consumers.add(key, decode(key, value))
        elif isinstance(key, ShareGroupKey):
            shares.add(key, value)
    list(consumers.finish())
    list(shares.finish())
    groups: list[Any] = [*consumers.groups.values(), *shares.groups.values()]
    assert len(groups) == 1
    return groups[0]


@pytest.mark.parametrize("kind", ["consumer", "share"])
def test_records_describe_the_group(kind: str) -> None:
    """What is read back is what was changed."""
    changes, member = changes_of(kind)
    member = member._replace(client_id="c", subscribed_topic_names=frozenset({"a"}))
    changes.put_member(member)
    changes.set_epoch(3, -5)
    changes.set_target("m", {A: (0, 1)})
    changes.set_assignment_epoch(3)
    changes.put_current(member._replace(member_epoch=3, assigned={A: (0,)}))
    versions = [int.from_bytes(key[:2], "big") for key, _ in changes.records]
    assert versions == VERSIONS[kind]
    there, here = replayed(changes), changes.group
    for name in ("group_epoch", "assignment_epoch", "metadata_hash", "members", "target"):
        assert getattr(there, name) == getattr(here, name), name
    assert there.name_counts == here.name_counts == {"a": 1}


@pytest.mark.parametrize("kind", ["consumer", "share"])
def test_removed_member_takes_its_target_with_it(kind: str) -> None:
    changes, member = changes_of(kind)
    changes.put_member(member)
    changes.set_target("m", {A: (0,)})
    changes.records.clear()
    changes.remove_member("m")
    metadata, _, target, _, current = VERSIONS[kind]
    assert [(int.from_bytes(key[:2], "big"), value) for key, value in changes.records] == [
        (current, None),
        (target, None),
        (metadata, None),
    ]
    assert (changes.group.members, changes.group.target) == ({}, {})
