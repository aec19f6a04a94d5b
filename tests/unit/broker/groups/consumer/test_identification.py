"""Which member a heartbeat is of, by member id, instance id and epoch."""

import pytest

from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.identification import find_member, known_member, updated_member
from broker.groups.consumer.member import STATIC_LEAVE_EPOCH, ConsumerGroupMember
from broker.groups.modern.member import Client
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

CLIENT = Client("c", "h")


@pytest.fixture
def group() -> ConsumerGroup:
    """`d` is a dynamic member in epoch 5, `s` a static one with instance id `i`."""
    group = ConsumerGroup("g")
    group.update_member(ConsumerGroupMember("d", 5, 4))
    group.update_member(ConsumerGroupMember("s", 5, 4, instance_id="i"))
    return group


def request(epoch: int, instance: str | None = None) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="", member_epoch=epoch, instance_id=instance, topic_partitions=[]
    )


@pytest.mark.parametrize("epoch", [0, 4, 5])
def test_member_is_found_in_an_epoch_that_it_can_be_in(group: ConsumerGroup, epoch: int) -> None:
    """Joining anew, before the answer with the last epoch came, or now."""
    assert find_member(group, request(epoch), "d") == (group.members["d"], None)


@pytest.mark.parametrize(("epoch", "kind"), [(3, "smaller"), (6, "greater")])
def test_other_epochs_are_fenced(group: ConsumerGroup, epoch: int, kind: str) -> None:
    with pytest.raises(ApiError, match=kind) as raised:
        find_member(group, request(epoch), "d")
    assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_unknown_member_may_only_join(group: ConsumerGroup) -> None:
    assert find_member(group, request(0), "new") == (ConsumerGroupMember("new"), None)
    with pytest.raises(ApiError) as raised:
        find_member(group, request(1), "new")
    assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_static_member_that_is_away_is_replaced(group: ConsumerGroup) -> None:
    """Its successor has what it had; while it is there the instance id is its own."""
    with pytest.raises(ApiError) as raised:
        find_member(group, request(0, "i"), "next")
    assert raised.value.code is ErrorCode.UNRELEASED_INSTANCE_ID
    away = group.members["s"]._replace(member_epoch=STATIC_LEAVE_EPOCH)
    group.update_member(away)
    heir, replaced = find_member(group, request(0, "i"), "next")
    assert replaced is away
    assert (heir.member_id, heir.member_epoch, heir.instance_id) == ("next", 0, "i")


@pytest.mark.parametrize(
    ("member_id", "instance", "code"),
    [
        ("nowhere", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("s", "nowhere", ErrorCode.UNKNOWN_MEMBER_ID),
        ("d", "i", ErrorCode.FENCED_INSTANCE_ID),
    ],
)
def test_ids_have_to_match(
    group: ConsumerGroup, member_id: str, instance: str | None, code: ErrorCode
) -> None:
    with pytest.raises(ApiError) as raised:
        known_member(group, member_id, instance)
    assert raised.value.code is code


def test_what_a_heartbeat_leaves_out_stays() -> None:
    names = frozenset({"a"})
    member = ConsumerGroupMember(
        "m", rack_id="r", rebalance_timeout_ms=7, subscribed_topic_names=names
    )
    assert updated_member(member, request(5), CLIENT) == member._replace(
        client_id="c", client_host="h"
    )
    changed = request(5)
    changed.subscribed_topic_names = ["a"]
    changed.rebalance_timeout_ms = 9
    updated = updated_member(member, changed, CLIENT)
    assert updated.rebalance_timeout_ms == 9
    assert updated.subscribed_topic_names is names, "the same topics are the same value"
