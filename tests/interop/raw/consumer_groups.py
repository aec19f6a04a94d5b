"""Scripts about groups of the KIP-848 protocol.

`Member` heartbeats as a client does: the first request says everything, later ones only what
changed, and what it owns follows what it was told.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid5

from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.sync_group import SyncGroupRequest
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script

JOIN, LEAVE, LEAVE_STATIC = 0, -1, -2
GROUP_RESOURCE = 32


def member_id(name: str) -> str:
    """An id as clients make it up, the same in every run and so comparable as it is."""
    return str(uuid5(UUID(int=1), name))


@dataclass
class Member:
    """A member that follows the protocol."""

    dialogue: Dialogue
    group: str
    name: str
    topics: list[str] | None = None
    instance: str | None = None
    version: int = 1
    epoch: int = 0
    owned: list[ConsumerGroupHeartbeatRequestTopicPartitions] = field(default_factory=list)

    def request(self, **fields: Any) -> ConsumerGroupHeartbeatRequest:
        """What it sends next; `fields` are changes or a client's mistakes."""
        joining = self.epoch == JOIN
        values: dict[str, Any] = {
            "group_id": self.group,
            "member_id": member_id(self.name),
            "member_epoch": self.epoch,
            "instance_id": self.instance,
            "rebalance_timeout_ms": 5_000 if joining else -1,
            "subscribed_topic_names": self.topics if joining else None,
            "topic_partitions": [] if joining else self.owned,
        }
        return ConsumerGroupHeartbeatRequest(**(values | fields))

    def _follow(self, answer: Any) -> None:
        if answer is not None and answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = [
                    ConsumerGroupHeartbeatRequestTopicPartitions(
                        topic_id=t.topic_id, partitions=list(t.partitions)
                    )
                    for t in answer.assignment.topic_partitions
                ]

    def beat(self, what: str, **fields: Any) -> Any:
        """One heartbeat, noted."""
        answer = self.dialogue.ask(f"{self.name} {what}", self.request(**fields), self.version)
        self._follow(answer)
        return answer

    def settle(self, *others: "Member", rounds: int = 6) -> None:
        """Heartbeats of all until nothing moves; what each has in the end is noted."""
        members = (self, *others)
        for _ in range(rounds):
            for member in members:
                answer = self.dialogue.ask_quietly(member.request(), member.version)
                member._follow(answer)
        for member in members:
            owned = [(t.topic_id, sorted(t.partitions)) for t in member.owned]
            plain = sorted(str(self.dialogue.plain(t)) + str(p) for t, p in owned)
            self.dialogue.transcript.append(f"{member.name} epoch {member.epoch} owns {plain}")

    def leave(self, epoch: int = LEAVE) -> None:
        """Say good-bye."""
        self.beat("leaves", member_epoch=epoch, topic_partitions=None)


def describe(d: Dialogue, group: str, what: str = "describe", version: int = 1) -> Any:
    """ConsumerGroupDescribe."""
    return d.ask(what, ConsumerGroupDescribeRequest(group_ids=[group]), version)


@script
def first_heartbeat_is_checked(d: Dialogue) -> None:
    """What a joining heartbeat must and must not say."""
    topic = d.create_topic()
    m = Member(d, d.name, "m", [topic])
    m.beat("empty group", group_id="")
    m.beat("empty member", member_id="")
    m.beat("empty instance", instance_id="")
    m.beat("empty rack", rack_id="")
    m.beat("no rebalance timeout", rebalance_timeout_ms=-1)
    m.beat("rebalance timeout 0", rebalance_timeout_ms=0, group_id=f"{d.name}-0")
    m.epoch = 0
    m.beat("no subscription", subscribed_topic_names=None)
    m.beat("partitions null", topic_partitions=None)
    tp = [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=d.topic_id(topic), partitions=[0])]
    m.beat("partitions owned", topic_partitions=tp)
    m.beat("unknown assignor", server_assignor="nonsense")
    m.beat("empty assignor", server_assignor="")
    m.beat("epoch -3", member_epoch=-3)
    m.beat("epoch -2 without instance", member_epoch=-2)
    m.beat("leave unknown group", member_epoch=-1)
    m.beat("epoch 5 of unknown group", member_epoch=5)
    m.beat("regex that is none", subscribed_topic_names=None, subscribed_topic_regex="(")
    m.beat("v0 without member id", member_id="")
    d.ask("v0 no member id", m.request(member_id="", group_id=f"{d.name}-v0"), 0)
    describe(d, d.name)


@script
def subscription_to_nothing(d: Dialogue) -> None:
    """An empty list of topics, an unknown topic, a bad topic name."""
    for number, topics in enumerate(([], [f"{d.name}-none"], ["not/a/topic"], [""])):
        m = Member(d, f"{d.name}-{number}", "m", list(topics))
        m.beat("joins")
        m.settle()
        describe(d, m.group)


@script
def member_life(d: Dialogue) -> None:
    """Join, a second one, both heads settle, one leaves."""
    topic = d.create_topic(partitions=4)
    a = Member(d, d.name, "a", [topic])
    b = Member(d, d.name, "b", [topic])
    a.beat("joins")
    a.beat("beats")
    a.beat("beats, partitions null", topic_partitions=None)
    describe(d, d.name, "describe one")
    b.beat("joins")
    describe(d, d.name, "describe two, unsettled")
    a.beat("is told to give up")
    b.beat("waits")
    a.settle(b)
    describe(d, d.name, "describe two, settled")
    b.leave()
    describe(d, d.name, "describe after leaving")
    a.settle()
    b.beat("beats after leaving", member_epoch=2)
    a.leave()
    describe(d, d.name, "describe empty")
    a.leave()


@script
def member_epochs(d: Dialogue) -> None:
    """Epochs ahead, behind, by one with and without the right partitions, unknown members."""
    topic = d.create_topic(partitions=2)
    a, b = (Member(d, d.name, n, [topic]) for n in "ab")
    a.beat("joins")
    a.settle()
    a.beat("ahead", member_epoch=a.epoch + 1)
    a.beat("far behind", member_epoch=a.epoch - 1, topic_partitions=[])
    b.beat("is unknown", member_epoch=a.epoch)
    b.beat("is unknown and leaves", member_epoch=-1)
    b.beat("is unknown static", member_epoch=1, instance_id="i")
    b.beat("is unknown static and leaves", member_epoch=-2, instance_id="i")
    b.beat("joins")
    a.settle(b)
    before = a.epoch - 1
    a.beat("one behind, same partitions", member_epoch=before)
    a.beat("one behind, none", member_epoch=before, topic_partitions=[])
    everything = [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=d.topic_id(topic), partitions=[0, 1])
    ]
    a.beat("one behind, too many", member_epoch=before, topic_partitions=everything)
    a.beat("partitions of others", topic_partitions=everything)
    a.settle(b)


@script
def rejoin_with_epoch_zero(d: Dialogue) -> None:
    """A member that was fenced, or lost its state, joins again under the same id."""
    topic = d.create_topic(partitions=2)
    a = Member(d, d.name, "a", [topic])
    a.beat("joins")
    a.settle()
    a.epoch = JOIN
    a.beat("joins again")
    a.settle()
    describe(d, d.name)


@script
def change_of_subscription(d: Dialogue) -> None:
    """Names change, to another topic, both, none; the group's epoch follows."""
    one, two = d.create_topic("-1"), d.create_topic("-2", partitions=2)
    a = Member(d, d.name, "a", [one])
    a.beat("joins")
    a.settle()
    for what, names in (("both", [one, two]), ("other", [two]), ("same", [two]), ("none", [])):
        a.beat(f"wants {what}", subscribed_topic_names=names)
        a.settle()
    describe(d, d.name)


@script
def assignors(d: Dialogue) -> None:
    """uniform, range, and a member who changes its mind; the majority decides.

    One topic for `uniform`: which of several goes to whom depends there on the topics' ids.
    """
    topic = d.create_topic(partitions=3)
    two = d.create_topic("-2", partitions=3)
    for assignor, other, topics in (
        ("uniform", "range", [topic]),
        ("range", "uniform", [topic, two]),
    ):
        a, b = (Member(d, f"{d.name}-{assignor}", n, topics) for n in "ab")
        a.beat(f"{assignor} joins", server_assignor=assignor)
        b.beat(f"{assignor} joins", server_assignor=assignor)
        a.settle(b)
        describe(d, a.group, f"{assignor} describe")
        a.beat(f"{assignor} changes", server_assignor=other)
        if topics == [topic]:
            a.settle(b)
            describe(d, a.group, f"{assignor} describe after change")
        a.beat(f"{assignor} asks for an unknown one", server_assignor="sticky")


@script
def static_members(d: Dialogue) -> None:
    """KIP-345 in KIP-848: -2 keeps the place, a second owner waits, an old one is fenced."""
    topic = d.create_topic(partitions=2)
    a = Member(d, d.name, "a", [topic], instance="i")
    other = Member(d, d.name, "other", [topic])
    a.beat("joins")
    other.beat("joins")
    a.settle(other)
    twin = Member(d, d.name, "twin", [topic], instance="i")
    twin.beat("joins while the place is taken")
    twin.beat("beats while the place is taken", member_epoch=a.epoch)
    a.leave(LEAVE_STATIC)
    describe(d, d.name, "describe, away")
    twin.beat("takes the place")
    twin.settle(other)
    describe(d, d.name, "describe, replaced")
    a.beat("is fenced", member_epoch=2)
    a.beat("is fenced and leaves", member_epoch=-2)
    a.beat("without instance", member_epoch=2, instance_id=None)
    twin.beat("other instance", instance_id="j")
    twin.leave(LEAVE)
    twin.epoch = JOIN
    twin.beat("joins after leaving for good")
    twin.settle(other)
    describe(d, d.name, "describe at the end")


@script
def static_member_changes_on_return(d: Dialogue) -> None:
    """A static member that comes back with another subscription makes a new epoch."""
    one, two = d.create_topic("-1"), d.create_topic("-2")
    a = Member(d, d.name, "a", [one], instance="i")
    a.beat("joins")
    a.settle()
    a.leave(LEAVE_STATIC)
    a.beat("leaves again", member_epoch=-2)
    b = Member(d, d.name, "b", [two], instance="i")
    b.beat("comes back for another topic")
    b.settle()
    describe(d, d.name)


@script
def regular_expressions(d: Dialogue) -> None:
    """KIP-848 v1: resolved by the broker, in time of its own."""
    for suffix in ("-one", "-two", "-three"):
        d.create_topic(suffix)
    cases = {
        "prefix": f"{d.name}-.*",
        "alternatives": f"{d.name}-(one|two)",
        "whole name only": f"{d.name}",
        "part of a name": "one",
        "class": f"{d.name}-t[a-z]+",
        "nothing": "surely-not-there",
        "case insensitive": f"(?i){d.name.upper()}-ONE",
    }
    for what, regex in cases.items():
        m = Member(d, f"{d.name}-{what.replace(' ', '-')}", "m")
        # How soon an expression is resolved is the broker's own matter.
        asked = m.request(subscribed_topic_names=None, subscribed_topic_regex=regex)
        answer = d.ask_quietly(asked, 1)
        m._follow(answer)
        expected = what not in ("whole name only", "part of a name", "nothing")
        for _ in range(200 if expected else 20):
            if m.owned or answer is None:
                break
            answer = d.ask_quietly(m.request(), 1)
            m._follow(answer)
            _pause()
        m.settle()
    for what, regex in {
        "bad bracket": "[",
        "bad group": "(",
        "back-reference": r"(a)\1",
        "look-ahead": "a(?=b)",
        "possessive": "a++",
        "repeat too large": "a{5000}",
        "empty": "",
    }.items():
        m = Member(d, f"{d.name}-bad-{what.replace(' ', '-')}", "m")
        m.beat(what, subscribed_topic_names=None, subscribed_topic_regex=regex)
    m = Member(d, f"{d.name}-v0", "m", version=0)
    m.beat("v0 has no expression", subscribed_topic_names=None)


@script
def names_and_expression(d: Dialogue) -> None:
    """Both at once, then the expression withdrawn with an empty one."""
    one = d.create_topic("-one")
    d.create_topic("-two")
    m = Member(d, d.name, "m", [one])
    m.beat("joins")
    answer = d.ask_quietly(m.request(subscribed_topic_regex=f"{d.name}-t.*"), 1)
    m._follow(answer)
    for _ in range(100):
        if answer.assignment is not None and len(answer.assignment.topic_partitions) == 2:
            break
        answer = d.ask_quietly(m.request(), 1)
        m._follow(answer)
        _pause()
    m.settle()
    m.beat("withdraws it", subscribed_topic_regex="")
    m.settle()
    describe(d, d.name)


@script
def new_partitions_reach_members(d: Dialogue) -> None:
    """A topic that is created after the subscription is assigned."""
    name = f"{d.name}-later"
    m = Member(d, d.name, "m", [name])
    m.beat("joins")
    m.settle()
    d.create_topic("-later", partitions=2)
    answer = None
    for _ in range(200):
        answer = d.ask_quietly(m.request(), 1)
        m._follow(answer)
        if m.owned:
            break
        _pause()
    m.settle()
    describe(d, d.name)


@script
def describe_edges(d: Dialogue) -> None:
    """Unknown, empty, classic; both versions, both APIs."""
    topic = d.create_topic()
    for version in (0, 1):
        describe(d, f"{d.name}-none", f"unknown v{version}", version)
        describe(d, "", f"empty v{version}", version)
    m = Member(d, d.name, "m", [topic])
    m.beat("joins")
    m.settle()
    for what, group_ids in (("with operations", [d.name]), ("twice", [d.name, d.name])):
        request = ConsumerGroupDescribeRequest(
            group_ids=group_ids, include_authorized_operations=True
        )
        d.ask(what, request)
    for version in (0, 3, 5, 6):
        request2 = DescribeGroupsRequest(groups=[d.name])
        d.ask(f"as a classic group v{version}", request2, version)


@script
def classic_requests_to_a_consumer_group(d: Dialogue) -> None:
    """Heartbeat, sync and leave of the old protocol for members of the new one."""
    topic = d.create_topic()
    m = Member(d, d.name, "m", [topic])
    m.beat("joins")
    m.settle()
    me = member_id("m")
    d.ask("heartbeat", HeartbeatRequest(group_id=d.name, generation_id=m.epoch, member_id=me))
    d.ask(
        "heartbeat of nobody",
        HeartbeatRequest(group_id=d.name, generation_id=m.epoch, member_id="nobody"),
    )
    d.ask("sync", SyncGroupRequest(group_id=d.name, generation_id=m.epoch, member_id=me))
    members = [MemberIdentity(member_id="nobody"), MemberIdentity(group_instance_id="i")]
    d.ask("leave of nobody", LeaveGroupRequest(group_id=d.name, members=members))
    d.ask("delete", DeleteGroupsRequest(groups_names=[d.name]))
    members = [MemberIdentity(member_id=me)]
    d.ask("leave", LeaveGroupRequest(group_id=d.name, members=members))
    m.beat("beats")
    d.ask("delete when empty", DeleteGroupsRequest(groups_names=[d.name]))
    describe(d, d.name)


@script
def list_groups_filters(d: Dialogue) -> None:
    """By state and type, in the versions that know them."""
    topic = d.create_topic()
    stable = Member(d, f"{d.name}-stable", "m", [topic])
    stable.beat("joins")
    stable.settle()
    gone = Member(d, f"{d.name}-gone", "g", [topic])
    gone.beat("joins")
    gone.leave()

    def mine(what: str, version: int = 5, **fields: Any) -> None:
        answer = d.ask_quietly(ListGroupsRequest(**fields), version)
        answer.groups = [g for g in answer.groups if g.group_id.startswith(d.name)]
        d.note(what, answer)

    mine("all")
    mine("v0", 0)
    mine("v4", 4)
    for states in (["Stable"], ["Empty"], ["stable"], ["Nonsense"], ["Assigning", "Empty"]):
        mine(f"states {states}", states_filter=states)
        mine(f"states {states} v4", 4, states_filter=states)
    for types in (["consumer"], ["classic"], ["Consumer"], ["nonsense"], ["share", "consumer"]):
        mine(f"types {types}", types_filter=types)
    mine("both", types_filter=["consumer"], states_filter=["Empty"])


@script
def session_of_the_group(d: Dialogue) -> None:
    """A group's own session timeout and interval; who is silent is put out."""
    topic = d.create_topic()

    def configure(what: str, **settings: str) -> None:
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE,
            resource_name=d.name,
            configs=[
                AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
                for key, value in settings.items()
            ],
        )
        d.ask(what, IncrementalAlterConfigsRequest(resources=[resource]))

    configure("interval", consumer_heartbeat_interval_ms="500")
    configure("interval too small", consumer_heartbeat_interval_ms="1")
    configure("interval too large", consumer_heartbeat_interval_ms="16000")
    configure("timeout too small", consumer_session_timeout_ms="1")
    configure("timeout not above interval", consumer_session_timeout_ms="500")
    configure("timeout", consumer_session_timeout_ms="1000")
    configure("unknown key", consumer_nonsense="1")
    configure("no number", consumer_session_timeout_ms="soon")
    m = Member(d, d.name, "m", [topic])
    m.beat("joins")
    m.settle()
    d.ask_until(
        "put out",
        ConsumerGroupDescribeRequest(group_ids=[d.name]),
        lambda a: not a.groups[0].members,
    )
    m.beat("beats too late")


@script
def rebalance_timeout(d: Dialogue) -> None:
    """Who does not give up its partitions in time is fenced."""
    topic = d.create_topic(partitions=2)
    a, b = (Member(d, d.name, n, [topic]) for n in "ab")
    a.beat("joins", rebalance_timeout_ms=700)
    a.settle()
    b.beat("joins")
    a.beat("is told, and keeps them", rebalance_timeout_ms=700)
    answer: Any = None
    for _ in range(200):
        answer = d.ask_quietly(a.request(topic_partitions=None), 1)
        if answer.error_code:
            break
        _pause()
    d.note("a is put out", answer)
    b.settle()
    describe(d, d.name)


def _pause() -> None:
    import time

    time.sleep(0.05)
