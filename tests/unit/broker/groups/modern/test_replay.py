"""Groups are the same in whatever order their newest records are read."""

from itertools import permutations
from typing import Any
from uuid import UUID

import pytest

from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.replay import ConsumerGroupReplay
from broker.groups.modern.replay import ModernGroupReplay
from broker.groups.share.replay import ShareGroupReplay
from protocol.internal import consumer_group_records as consumer
from protocol.internal import share_group_records as share
from protocol.internal.target_assignment import (
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
)

A = UUID(int=1)


def replay_of(kind: str) -> tuple[ModernGroupReplay[Any, Any, Any], Any, Any]:
    """The replay, a member's metadata and its current assignment."""
    if kind == "consumer":
        return (
            ConsumerGroupReplay(),
            consumer.ConsumerGroupMemberMetadataValue(None, None, "c", "h", ("a",), "", 1, None),
            consumer.ConsumerGroupCurrentMemberAssignmentValue(4, 3, 0, {A: (1, 0)}, {}),
        )
    return (
        ShareGroupReplay(),
        share.ShareGroupMemberMetadataValue(None, "c", "h", ("a",)),
        share.ShareGroupCurrentMemberAssignmentValue(4, 3, 0, {A: (1, 0)}),
    )


@pytest.mark.parametrize("kind", ["consumer", "share"])
@pytest.mark.parametrize("order", list(permutations(range(5)))[::7], ids=str)
def test_order_of_keys_does_not_matter(kind: str, order: tuple[int, ...]) -> None:
    replay, metadata, current = replay_of(kind)
    steps = [
        lambda: replay.add_epoch("g", 4, -1),
        lambda: replay.add_metadata("g", "m", metadata),
        lambda: replay.add_current("g", "m", current),
        lambda: replay.add_target_epoch("g", TargetAssignmentMetadataValue(3)),
        lambda: replay.add_target("g", "m", TargetAssignmentMemberValue({A: (2, 0)})),
    ]
    for index in order:
        steps[index]()
    assert len(list(replay.finish())) == 1, "one pause for each member"
    group = replay.groups["g"]
    assert (group.group_epoch, group.assignment_epoch, group.metadata_hash) == (4, 3, -1)
    assert group.target == {"m": {A: (0, 2)}}
    member = group.members["m"]
    assert (member.member_epoch, member.assigned) == (4, {A: (0, 1)})
    assert group.name_counts == {"a": 1}


@pytest.mark.parametrize("kind", ["consumer", "share"])
def test_member_without_metadata_is_left_out(kind: str) -> None:
    """Its record was damaged: it has to join again."""
    replay, _, current = replay_of(kind)
    replay.add_epoch("g", 4, 0)
    replay.add_current("g", "m", current)
    assert not list(replay.finish())
    assert replay.groups["g"].is_empty


def test_group_is_made_once() -> None:
    replay = ConsumerGroupReplay()
    assert isinstance(replay.group("g"), ConsumerGroup)
    assert replay.group("g") is replay.group("g")
