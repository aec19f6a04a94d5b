"""Scripts about several members of one group, heartbeat by heartbeat, and of both protocols."""

from typing import Any

from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequestProtocol
from protocol.messages.sync_group import SyncGroupRequestAssignment
from tests.interop.raw.classic_groups import (
    JOIN_VERSION,
    assignment,
    heartbeat,
    join,
    join_request,
    leave,
    subscription,
    sync,
)
from tests.interop.raw.consumer_groups import JOIN, LEAVE_STATIC, Member, describe
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script


def owns(d: Dialogue, topic: str, *partitions: int) -> dict[str, Any]:
    """What a heartbeat says that reports these partitions."""
    one = ConsumerGroupHeartbeatRequestTopicPartitions(
        topic_id=d.topic_id(topic), partitions=list(partitions)
    )
    return {"topic_partitions": [one] if partitions else []}


@script
def three_members_step_by_step(d: Dialogue) -> None:
    """They join one by one and leave one by one; every heartbeat until nothing moves."""
    topic = d.create_topic(partitions=7)
    for assignor in ("range", "uniform"):
        a, b, c = all_ = [Member(d, f"{d.name}-{assignor}", name, [topic]) for name in "abc"]
        for number, member in enumerate(all_):
            member.beat(f"{assignor} joins", server_assignor=assignor)
            for turn in range(4):
                for other in all_[: number + 1]:
                    other.beat(f"{assignor} {number} {turn}")
        describe(d, a.group, f"{assignor} three")
        for number, member in enumerate((b, a)):
            member.leave()
            left = [c, a] if number == 0 else [c]
            for turn in range(3):
                for other in left:
                    other.beat(f"{assignor} after {number} {turn}")
        describe(d, a.group, f"{assignor} one")


@script
def partitions_are_given_back_late(d: Dialogue) -> None:
    """A member reports what it owns for a while, then a part, then all that was asked."""
    topic = d.create_topic(partitions=4)
    a, b, c = (Member(d, d.name, name, [topic]) for name in "abc")
    a.beat("joins")
    a.settle()
    b.beat("joins")
    a.beat("is told", **owns(d, topic, 0, 1, 2, 3))
    a.beat("keeps all", **owns(d, topic, 0, 1, 2, 3))
    b.beat("waits")
    a.beat("says nothing", topic_partitions=None)
    describe(d, d.name, "describe, unrevoked")
    c.beat("joins in between")
    a.beat("keeps a part", **owns(d, topic, 0, 1, 2))
    a.beat("keeps what it shall have")
    for turn in range(4):
        for member in (b, a, c):
            member.beat(f"turn {turn}")
    describe(d, d.name, "describe, settled")
    a.beat("reports less than it has", topic_partitions=[])
    a.beat("reports more than it has", **owns(d, topic, 0, 1, 2, 3))
    a.beat("goes on")


@script
def members_leave_in_the_middle(d: Dialogue) -> None:
    """Who shall give something back leaves; who waits for it leaves; the last one leaves."""
    topic = d.create_topic(partitions=3)
    a, b, c = (Member(d, d.name, name, [topic]) for name in "abc")
    a.beat("joins")
    b.beat("joins")
    a.beat("is told", **owns(d, topic, 0, 1, 2))
    a.leave()
    for turn in range(3):
        b.beat(f"after a {turn}")
    c.beat("joins")
    b.beat("is told", **owns(d, topic, 0, 1, 2))
    c.leave()
    for turn in range(3):
        b.beat(f"after c {turn}")
    describe(d, d.name)
    b.leave()
    describe(d, d.name, "describe empty")
    b.epoch = JOIN
    b.beat("is back")
    describe(d, d.name, "describe again")


@script
def epochs_of_three_members(d: Dialogue) -> None:
    """Each in an epoch of its own while partitions move; wrong ones are fenced, nobody else is."""
    topic = d.create_topic(partitions=6)
    a, b, c = (Member(d, d.name, name, [topic]) for name in "abc")
    for member in (a, b, c):
        member.beat("joins")
    a.beat("is told", **owns(d, topic, *range(6)))
    for member in (a, b, c):
        for wrong in (member.epoch + 1, member.epoch - 1, 99):
            if wrong > 0:
                member.beat(f"in epoch {wrong}", member_epoch=wrong)
    describe(d, d.name, "describe, moving")
    a.beat("gives back")
    b.beat("gets")
    c.beat("gets")
    b.beat("one behind, nothing owned", member_epoch=b.epoch - 1, topic_partitions=[])
    b.beat("one behind, what it owns", member_epoch=b.epoch - 1)
    b.beat("two behind", member_epoch=b.epoch - 2)
    c.beat("joins again under its id", member_epoch=JOIN, topic_partitions=[])
    c.beat(
        "joins again with all fields",
        member_epoch=JOIN,
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    for turn in range(3):
        for member in (a, b, c):
            member.beat(f"turn {turn}")
    describe(d, d.name, "describe, settled")


@script
def full_requests(d: Dialogue) -> None:
    """A heartbeat with all fields is answered with the assignment, though nothing changed."""
    topic = d.create_topic(partitions=2)
    a = Member(d, d.name, "a", [topic])
    a.beat("joins")
    everything: dict[str, Any] = {
        "rebalance_timeout_ms": 5_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": a.owned,
    }
    a.beat("all fields", **everything)
    nothing = {"rebalance_timeout_ms": -1, "subscribed_topic_names": None, "topic_partitions": None}
    for left_out, value in nothing.items():
        a.beat(f"without {left_out}", **(everything | {left_out: value}))
    a.beat("expression too", **everything, subscribed_topic_regex="")
    a.beat("other rack", rack_id="r")
    a.beat("other timeout", rebalance_timeout_ms=7_000)
    describe(d, d.name)


@script
def subscriptions_of_two_members(d: Dialogue) -> None:
    """Topics shared and not; each change moves only what it must, at the next heartbeats."""
    one, two = d.create_topic("-1", partitions=2), d.create_topic("-2", partitions=2)
    a, b = Member(d, d.name, "a", [one]), Member(d, d.name, "b", [two])
    a.beat("joins", server_assignor="range")
    b.beat("joins", server_assignor="range")
    steps: list[tuple[Member, list[str]]] = [
        (a, [one, two]),
        (b, [one, two]),
        (a, [two]),
        (b, [one]),
        (b, []),
        (b, [one, two]),
        (a, [f"{d.name}-none"]),
    ]
    for number, (member, topics) in enumerate(steps):
        member.beat(f"{number} wants {len(topics)}", subscribed_topic_names=topics)
        for turn in range(3):
            a.beat(f"{number} {turn}")
            b.beat(f"{number} {turn}")
        describe(d, d.name, f"{number} describe")


@script
def static_member_is_replaced_while_partitions_move(d: Dialogue) -> None:
    """Its successor gets its place, with what it had still to give back or to get.

    By `range`: whom `uniform` leaves one more goes in Kafka by the hashes of member ids.
    """
    topic = d.create_topic(partitions=4)
    a = Member(d, d.name, "a", [topic], instance="i")
    b = Member(d, d.name, "b", [topic])
    a.beat("joins", server_assignor="range")
    b.beat("joins", server_assignor="range")
    a.beat("is told", **owns(d, topic, 0, 1, 2, 3))
    a.leave(LEAVE_STATIC)
    b.beat("waits for the one away")
    describe(d, d.name, "describe, away")
    again = Member(d, d.name, "again", [topic], instance="i")
    again.beat("takes the place", server_assignor="range")
    b.beat("gets its part")
    describe(d, d.name, "describe, replaced")
    a.beat("old one beats")
    joining: dict[str, Any] = {
        "member_epoch": JOIN,
        "rebalance_timeout_ms": 5_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": [],
    }
    a.beat("old one joins", **joining)
    a.epoch = 2
    a.leave(LEAVE_STATIC)
    for turn in range(3):
        again.beat(f"turn {turn}")
        b.beat(f"turn {turn}")
    third = Member(d, d.name, "third", [topic], instance="j")
    third.beat("joins with another instance", server_assignor="range")
    third.beat("beats with the first instance", instance_id="i")
    for turn in range(3):
        for member in (again, b, third):
            member.beat(f"later {turn}")
    again.leave(LEAVE_STATIC)
    again.beat("is back under the same id", **joining)
    again.leave()
    for turn in range(3):
        for member in (b, third):
            member.beat(f"last {turn}")
    describe(d, d.name, "describe at the end")


@script
def classic_and_new_members_change_places(d: Dialogue) -> None:
    """Two classic members, one new one; the group is taken over, shared, and handed back."""
    topic = d.create_topic(partitions=2)
    classic = join(d, d.name, "classic", topic=topic)
    given = [
        SyncGroupRequestAssignment(member_id=classic.member_id, assignment=assignment(topic, 0, 1))
    ]
    sync(d, d.name, classic, "classic sync", assignments=given)
    m = Member(d, d.name, "m", [topic])
    m.beat("joins")
    heartbeat(d, d.name, classic, "classic is told")
    heartbeat(d, d.name, classic, "other generation", generation_id=classic.generation_id + 5)
    heartbeat(d, d.name, classic, "nobody", member_id="nobody")
    sync(d, d.name, classic, "classic syncs too early", assignments=[])
    m.beat("waits")
    describe(d, d.name, "describe, unrevoked")

    def rejoin(what: str, *partitions: int) -> Any:
        """Join, owning these partitions as a cooperative member tells, then sync."""
        told = subscription(topic)[:-4] + assignment_owned(topic, *partitions)
        protocols = [JoinGroupRequestProtocol(name="range", metadata=told)]
        request = join_request(d.name, classic.member_id, protocols=protocols)
        answer = d.ask(f"{what} joins", request, JOIN_VERSION)
        if answer is not None and answer.error_code == 0:
            sync(d, d.name, answer, f"{what} syncs", assignments=[])
            heartbeat(d, d.name, answer, f"{what} beats")
        return answer

    rejoin("keeps all", 0, 1)
    again = rejoin("gives one back", 0)
    m.beat("gets one")
    again = rejoin("once more", 0)
    m.beat("beats")
    describe(d, d.name, "describe, shared")
    d.ask("describe as classic", DescribeGroupsRequest(groups=[d.name]))
    n = Member(d, d.name, "n", [topic])
    n.beat("joins")
    heartbeat(d, d.name, again, "classic is told of n")
    n.leave()
    heartbeat(d, d.name, again, "classic after n")
    again = rejoin("after n", 0)
    m.beat("beats after n")
    leave(d, d.name, "nobody", "nobody leaves")
    m.leave()
    d.ask("describe classic", DescribeGroupsRequest(groups=[d.name]))
    heartbeat(d, d.name, again, "after the downgrade")
    d.ask("new describe", ConsumerGroupDescribeRequest(group_ids=[d.name]))
    m.epoch = JOIN
    m.beat("joins once more")
    leave(d, d.name, classic.member_id, "classic leaves")
    for turn in range(3):
        m.beat(f"alone {turn}")
    describe(d, d.name, "describe alone")
    heartbeat(d, d.name, again, "who has left beats")


def assignment_owned(topic: str, *partitions: int) -> bytes:
    """The part of a Subscription, v1, that says which partitions are owned."""
    if not partitions:
        return (0).to_bytes(4, "big")
    body = (1).to_bytes(4, "big") + len(topic).to_bytes(2, "big") + topic.encode()
    return body + b"".join(n.to_bytes(4, "big") for n in (len(partitions), *partitions))


@script
def classic_member_joins_a_consumer_group(d: Dialogue) -> None:
    """The other way round: the new one was first; the classic one shares, then is alone."""
    topic = d.create_topic(partitions=2)
    m = Member(d, d.name, "m", [topic])
    m.beat("joins")
    joined = join(d, d.name, "classic", topic=topic)
    sync(d, d.name, joined, "classic sync", assignments=[])
    heartbeat(d, d.name, joined, "classic beats")
    m.beat("is told", **owns(d, topic, 0, 1))
    m.beat("gives back")
    heartbeat(d, d.name, joined, "classic is told")
    describe(d, d.name)
    again = d.ask(
        "classic joins again", join_request(d.name, joined.member_id, topic=topic), JOIN_VERSION
    )
    sync(d, d.name, again, "classic syncs again", assignments=[])
    heartbeat(d, d.name, again, "classic beats again")
    heartbeat(d, d.name, joined, "classic in its old generation")
    describe(d, d.name, "describe settled")
    m.leave()
    d.ask("describe classic", DescribeGroupsRequest(groups=[d.name]))
    d.ask(
        "classic beats alone",
        HeartbeatRequest(
            group_id=d.name, generation_id=again.generation_id, member_id=again.member_id
        ),
    )
    leave(d, d.name, again.member_id, "classic leaves")
    d.ask("describe at the end", DescribeGroupsRequest(groups=[d.name]))
