"""Scripts about groups of the classic protocol, and groups that change from one to the other."""

import struct
from typing import Any

from protocol.api_keys import ApiKey
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.interop.raw.consumer_groups import Member
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script

JOIN_VERSION = 9


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def subscription(*topics: str, version: int = 1) -> bytes:
    """The embedded protocol's Subscription, v1: topics, no user data, nothing owned."""
    body = struct.pack(">hi", version, len(topics)) + b"".join(map(_string, topics))
    return body + struct.pack(">i", -1) + struct.pack(">i", 0)


def assignment(topic: str, *partitions: int) -> bytes:
    """The embedded protocol's Assignment, v1."""
    body = struct.pack(">hi", 1, 1) + _string(topic) + struct.pack(">i", len(partitions))
    body += b"".join(struct.pack(">i", p) for p in partitions)
    return body + struct.pack(">i", -1)


def join_request(group: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    """A consumer's JoinGroup."""
    topic = fields.pop("topic", "t")
    values: dict[str, Any] = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 5_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=subscription(topic))],
    }
    return JoinGroupRequest(**(values | fields))


def join(d: Dialogue, group: str, what: str, version: int = JOIN_VERSION, **fields: Any) -> Any:
    """Join by both steps (KIP-394)."""
    answer = d.ask(f"{what}, asks for an id", join_request(group, **fields), version)
    if answer is not None and answer.error_code == 79:
        answer = d.ask(what, join_request(group, answer.member_id, **fields), version)
    return answer


def sync(d: Dialogue, group: str, joined: Any, what: str, **fields: Any) -> Any:
    """Give oneself everything."""
    values: dict[str, Any] = {
        "group_id": group,
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
        "protocol_type": joined.protocol_type,
        "protocol_name": joined.protocol_name,
        "assignments": [
            SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment("t", 0))
        ],
    }
    return d.ask(what, SyncGroupRequest(**(values | fields)))


def heartbeat(d: Dialogue, group: str, joined: Any, what: str, **fields: Any) -> Any:
    """Heartbeat of the classic protocol."""
    values: dict[str, Any] = {
        "group_id": group,
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
    }
    return d.ask(what, HeartbeatRequest(**(values | fields)))


def leave(d: Dialogue, group: str, member: str, what: str = "leave", **fields: Any) -> Any:
    """LeaveGroup of one member."""
    members = [MemberIdentity(member_id=member, **fields)]
    return d.ask(what, LeaveGroupRequest(group_id=group, members=members))


@script
def join_group_is_checked(d: Dialogue) -> None:
    """Bad fields of JoinGroup."""
    cases: dict[str, dict[str, Any]] = {
        "empty group": {"group_id": ""},
        "session too short": {"session_timeout_ms": 1},
        "session too long": {"session_timeout_ms": 1_800_001},
        "unknown member": {"member_id": "nobody"},
        "no protocol type": {"protocol_type": ""},
        "no protocols": {"protocols": []},
        "empty instance": {"group_instance_id": ""},
        "bad instance": {"group_instance_id": "a b"},
        "dot instance": {"group_instance_id": "."},
        "long instance": {"group_instance_id": "i" * 250},
    }
    for number, (what, fields) in enumerate(cases.items()):
        group = {"group_id": f"{d.name}-{number}"}
        d.ask(what, join_request("", **(group | fields)), JOIN_VERSION)


@script
def join_in_every_version(d: Dialogue) -> None:
    """One member, each version of JoinGroup; from 4 on an id is given first."""
    for version in range(2, JOIN_VERSION + 1):
        group = f"{d.name}-{version}"
        joined = join(d, group, f"v{version}", version)
        sync(d, group, joined, f"v{version} sync", protocol_type="consumer", protocol_name="range")
        leave(d, group, joined.member_id, f"v{version} leave")


@script
def member_requests_are_checked(d: Dialogue) -> None:
    """Sync, heartbeat and leave with wrong generations, members and protocols."""
    joined = join(d, d.name, "join")
    heartbeat(d, d.name, joined, "heartbeat before sync")
    sync(d, d.name, joined, "sync, other generation", generation_id=joined.generation_id + 1)
    sync(d, d.name, joined, "sync, other member", member_id="nobody")
    sync(d, d.name, joined, "sync, other type", protocol_type="connect")
    sync(d, d.name, joined, "sync, other protocol", protocol_name="sticky")
    sync(d, d.name, joined, "sync, unknown group", group_id=f"{d.name}-none")
    sync(d, d.name, joined, "sync, empty group", group_id="")
    sync(d, d.name, joined, "sync, instance", group_instance_id="i")
    sync(d, d.name, joined, "sync")
    sync(d, d.name, joined, "sync again", assignments=[])
    heartbeat(d, d.name, joined, "heartbeat")
    heartbeat(d, d.name, joined, "heartbeat, generation", generation_id=joined.generation_id - 1)
    heartbeat(d, d.name, joined, "heartbeat, member", member_id="nobody")
    heartbeat(d, d.name, joined, "heartbeat, empty member", member_id="")
    heartbeat(d, d.name, joined, "heartbeat, unknown group", group_id=f"{d.name}-none")
    heartbeat(d, d.name, joined, "heartbeat, empty group", group_id="")
    heartbeat(d, d.name, joined, "heartbeat, instance", group_instance_id="i")
    leave(d, d.name, "nobody", "leave of nobody")
    leave(d, f"{d.name}-none", "nobody", "leave of an unknown group")
    leave(d, "", "nobody", "leave of an empty group")
    leave(d, d.name, "", "leave of an unknown instance", group_instance_id="i")
    d.ask("delete", DeleteGroupsRequest(groups_names=[d.name]))
    d.ask("describe", DescribeGroupsRequest(groups=[d.name, f"{d.name}-none", ""]))
    d.ask("as a consumer group", ConsumerGroupDescribeRequest(group_ids=[d.name]))
    leave(d, d.name, joined.member_id)
    d.ask("describe empty", DescribeGroupsRequest(groups=[d.name]))
    d.ask("delete empty", DeleteGroupsRequest(groups_names=[d.name, f"{d.name}-none", ""]))
    d.ask("describe deleted", DescribeGroupsRequest(groups=[d.name]))


@script
def protocols_must_meet(d: Dialogue) -> None:
    """A member of another type, or with no protocol in common; one that rejoins alike."""
    joined = join(d, d.name, "first")
    sync(d, d.name, joined, "sync")
    join(d, d.name, "other type", protocol_type="connect")
    other = [JoinGroupRequestProtocol(name="sticky", metadata=subscription("t"))]
    join(d, d.name, "other protocol", protocols=other)
    d.ask("joins again", join_request(d.name, joined.member_id), JOIN_VERSION)
    d.ask("describe", DescribeGroupsRequest(groups=[d.name]))


@script
def static_members_of_classic_groups(d: Dialogue) -> None:
    """KIP-345: a second owner of an instance fences the first, without a rebalance."""
    static = {"group_instance_id": "i"}
    first = d.ask("first", join_request(d.name, **static), JOIN_VERSION)
    sync(d, d.name, first, "first sync", **static)
    second = d.ask("second", join_request(d.name, **static), JOIN_VERSION)
    heartbeat(d, d.name, first, "first is fenced", **static)
    sync(d, d.name, first, "first syncs", **static)
    heartbeat(d, d.name, first, "first without instance")
    leave(d, d.name, first.member_id, "first leaves", **static)
    d.ask("first joins with its id", join_request(d.name, first.member_id, **static), JOIN_VERSION)
    sync(d, d.name, second, "second syncs", assignments=[], **static)
    heartbeat(d, d.name, second, "second beats", **static)
    heartbeat(d, d.name, second, "second, other instance", group_instance_id="j")
    d.ask("describe", DescribeGroupsRequest(groups=[d.name]))
    leave(d, d.name, "", "removed by instance", **static)
    heartbeat(d, d.name, second, "second after removal", **static)


@script
def two_members_and_a_rebalance(d: Dialogue) -> None:
    """The second joins while the first is stable: told by heartbeat, both join, leader decides."""
    first = join(d, d.name, "first")
    sync(d, d.name, first, "first sync")
    asked = d.ask("second, asks for an id", join_request(d.name), JOIN_VERSION)
    waiting = d.another_connection()
    d.send(join_request(d.name, asked.member_id), JOIN_VERSION, waiting)
    d.ask_until(
        "first is told",
        HeartbeatRequest(
            group_id=d.name, generation_id=first.generation_id, member_id=first.member_id
        ),
        lambda a: a.error_code != 0,
    )
    sync(d, d.name, first, "first syncs too early", assignments=[])
    again = d.ask("first joins again", join_request(d.name, first.member_id), JOIN_VERSION)
    second = d.receive(ApiKey.JOIN_GROUP, JOIN_VERSION, waiting)
    d.note("second joined", second)
    d.send(
        SyncGroupRequest(
            group_id=d.name,
            generation_id=second.generation_id,
            member_id=second.member_id,
            protocol_type="consumer",
            protocol_name="range",
        ),
        5,
        waiting,
    )
    given = [
        SyncGroupRequestAssignment(member_id=again.member_id, assignment=assignment("t", 0)),
        SyncGroupRequestAssignment(member_id=second.member_id, assignment=assignment("t", 1)),
        SyncGroupRequestAssignment(member_id="nobody", assignment=assignment("t", 2)),
    ]
    sync(d, d.name, again, "leader sync", assignments=given)
    d.note("second synced", d.receive(ApiKey.SYNC_GROUP, 5, waiting))
    d.ask("describe", DescribeGroupsRequest(groups=[d.name]))
    leave(d, d.name, second.member_id, "second leaves")
    heartbeat(d, d.name, again, "first after leaving")


# -- between the two protocols ---------------------------------------------------------------------


@script
def consumer_group_from_empty_classic_group(d: Dialogue) -> None:
    """An empty classic group becomes a consumer group when a new client comes, and back."""
    topic = d.create_topic()
    joined = join(d, d.name, "classic")
    sync(d, d.name, joined, "classic sync")
    leave(d, d.name, joined.member_id, "classic leaves")
    m = Member(d, d.name, "m", [topic])
    m.beat("joins")
    m.settle()
    d.ask("describe", ConsumerGroupDescribeRequest(group_ids=[d.name]))
    m.leave()
    joined = join(d, d.name, "classic again", topic=topic)
    sync(d, d.name, joined, "classic again sync")
    d.ask("describe classic", DescribeGroupsRequest(groups=[d.name]))


@script
def upgrade_and_downgrade_with_members(d: Dialogue) -> None:
    """A live classic member is taken along; its own requests go on; at the end back again."""
    topic = d.create_topic(partitions=2)
    classic = join(d, d.name, "classic", topic=topic)
    given = [
        SyncGroupRequestAssignment(member_id=classic.member_id, assignment=assignment(topic, 0, 1))
    ]
    sync(d, d.name, classic, "classic sync", assignments=given)
    m = Member(d, d.name, "m", [topic])
    m.beat("joins a classic group")
    d.ask("describe", ConsumerGroupDescribeRequest(group_ids=[d.name]))
    heartbeat(d, d.name, classic, "classic beats")
    again = d.ask(
        "classic joins again", join_request(d.name, classic.member_id, topic=topic), JOIN_VERSION
    )
    if again is not None and again.error_code == 0:
        sync(d, d.name, again, "classic syncs again", assignments=[])
        heartbeat(d, d.name, again, "classic beats again")
    m.settle()
    heartbeat(d, d.name, again, "classic beats on")
    d.ask("describe mixed", ConsumerGroupDescribeRequest(group_ids=[d.name]))
    join(d, d.name, "classic of another type", protocol_type="connect", topic=topic)
    m.leave()
    d.ask("describe classic", DescribeGroupsRequest(groups=[d.name]))
    heartbeat(d, d.name, again, "classic after downgrade")


@script
def classic_member_with_bad_metadata(d: Dialogue) -> None:
    """A consumer group has to understand what a classic member subscribes to."""
    m = Member(d, d.name, "m", ["t"])
    m.beat("joins")
    bad = [JoinGroupRequestProtocol(name="range", metadata=b"nonsense")]
    d.ask("bad metadata", join_request(d.name, protocols=bad, group_instance_id="i"), JOIN_VERSION)
    m.beat("beats on")


@script
def new_client_and_foreign_group(d: Dialogue) -> None:
    """A group of another protocol type is no consumer group and does not become one."""
    joined = join(d, d.name, "connect", protocol_type="connect")
    sync(d, d.name, joined, "connect sync")
    m = Member(d, d.name, "m", ["t"])
    m.beat("joins")
    d.ask("describe", DescribeGroupsRequest(groups=[d.name]))
    leave(d, d.name, joined.member_id)
    m.beat("joins when empty")
