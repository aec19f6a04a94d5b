"""State of one group: what holds within it."""

from itertools import product

import pytest

from broker.groups.classic.classic_group import ClassicGroup, ClassicMember
from broker.groups.classic.classic_group_state import VALID_PREVIOUS_STATES, ClassicGroupState
from broker.runtime.deadline import Deadline
from protocol.error_codes import ErrorCode
from tests.fakes.timer import ManualTimer
from tests.harness.groups import subscription

STATES = list(ClassicGroupState)
ALLOWED = {
    ("Empty", "PreparingRebalance"),
    ("PreparingRebalance", "Empty"),
    ("PreparingRebalance", "CompletingRebalance"),
    ("CompletingRebalance", "PreparingRebalance"),
    ("CompletingRebalance", "Stable"),
    ("Stable", "PreparingRebalance"),
    *((state.value, "Dead") for state in STATES),
}


def group_in(state: ClassicGroupState = ClassicGroupState.EMPTY) -> ClassicGroup:
    return ClassicGroup("g", state=state, current_state_timestamp_ms=0)


def member(
    name: str, *protocols: str | tuple[str, bytes], instance: str | None = None
) -> ClassicMember:
    timer = ManualTimer()
    return ClassicMember(
        member_id=name,
        group_instance_id=instance,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=len(name) * 1_000,
        session_timeout_ms=1_000,
        protocols=tuple((p, b"") if isinstance(p, str) else p for p in protocols),
        session=Deadline(timer, timer.clock, lambda: None),
    )


@pytest.mark.parametrize(("source", "target"), list(product(STATES, STATES)))
def test_only_the_drawn_arrows_exist(source: ClassicGroupState, target: ClassicGroupState) -> None:
    """Kafka's ClassicGroupState; everything may die."""
    group = group_in(source)
    if (source.value, target.value) in ALLOWED:
        group.transition_to(target, 7)
        assert (group.state, group.previous_state) == (target, source)
        assert group.current_state_timestamp_ms == 7
    else:
        assert source not in VALID_PREVIOUS_STATES[target]
        with pytest.raises(AssertionError):
            group.transition_to(target, 7)


def test_first_member_leads_and_decides_the_type() -> None:
    group = group_in()
    group.add(member("a", "x"), None, "connect")
    group.add(member("b", "x"), None, "connect")
    assert (group.leader_id, group.protocol_type) == ("a", "connect")
    group.remove("a")
    assert group.leader_id == "b"
    group.remove("b")
    assert group.leader_id is None


def test_vote_is_among_protocols_that_all_know() -> None:
    """Of equals the one voted for first."""
    group = group_in()
    for name, protocols in (("a", "xyz"), ("b", "zyx"), ("c", "yz")):
        group.add(member(name, *protocols), None, "t")
    assert group.select_protocol() == "y"  # a: y, b: z, c: y
    group.remove("c")
    assert group.select_protocol() == "x"


def test_supported_protocols_follow_the_members() -> None:
    group = group_in()
    assert group.supports_protocols("any", (("x", b""),))
    group.add(member("a", "x", "y"), None, "t")
    group.add(member("b", "y", "z"), None, "t")
    group.state = ClassicGroupState.STABLE
    assert group.supports_protocols("t", (("y", b""),))
    assert not group.supports_protocols("t", (("x", b""), ("z", b"")))
    assert not group.supports_protocols("other", (("y", b""),))
    group.remove("a")
    assert group.supports_protocols("t", (("z", b""),))


def test_longest_rebalance_timeout_counts() -> None:
    group = group_in()
    assert group.rebalance_timeout_ms == 0
    group.add(member("a", "x"), None, "t")
    group.add(member("bbb", "x"), None, "t")
    assert group.rebalance_timeout_ms == 3_000


def test_member_is_who_it_says() -> None:
    group = group_in()
    group.add(member("a", "x", instance="i"), None, "t")
    for member_id, instance, code in (
        ("a", None, ErrorCode.NONE),
        ("a", "i", ErrorCode.NONE),
        ("b", "i", ErrorCode.FENCED_INSTANCE_ID),
        ("a", "j", ErrorCode.UNKNOWN_MEMBER_ID),
        ("b", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert group.validate_member(member_id, instance) is code


def test_replaced_static_member_keeps_its_place() -> None:
    """Leadership, votes, and whether its SyncGroup is still to come."""
    group = group_in()
    old, new = member("a", "x", instance="i"), member("b", "y", instance="i")
    group.add(old, None, "t")
    group.pending_sync.add("a")
    group.replace_static(old, new)
    assert group.leader_id == "b"
    assert group.static_members == {"i": "b"}
    assert group.pending_sync == {"b"}
    assert group.select_protocol() == "y"
    group.remove("a")
    assert group.static_members == {"i": "b"}


def test_parked_joins_are_counted() -> None:
    group = group_in()
    a, b = member("a", "x"), member("b", "x")
    group.add(a, lambda _: None, "t")
    group.add(b, None, "t")
    assert group.awaiting_join == 1
    assert not group.has_all_members_joined
    group.set_join_reply(b, lambda _: None)
    assert group.has_all_members_joined
    group.set_join_reply(b, lambda _: None)
    assert group.awaiting_join == 2
    group.set_join_reply(a, None)
    assert list(group.not_yet_rejoined()) == [a]


def test_subscription_is_known_of_consumers_only() -> None:
    group = group_in()
    group.add(member("a", ("x", subscription("t"))), None, "consumer")
    group.protocol_name = "x"
    assert group.compute_subscribed_topics() == frozenset({"t"})
    other = group_in()
    other.add(member("a", ("x", subscription("t"))), None, "connect")
    other.protocol_name = "x"
    assert other.compute_subscribed_topics() is None
    assert not other.is_subscribed_to("t")
