"""Requests of both group protocols and of offsets, framed by hand; see `bench.wire`.

Source: Kafka's protocol guide; KIP-62, KIP-345, KIP-394 (classic groups), KIP-848.
"""

import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench import flexible, wire
from bench.flexible import NO_TAGS, answer_of

OFFSET_COMMIT, OFFSET_FETCH = 8, 9
CONSUMER_GROUP_HEARTBEAT = 68
_METADATA_VERSION = 12

LEAVING = -1
"""The member epoch of a KIP-848 member that goes."""

Assignment = dict[uuid.UUID, tuple[int, ...]]


# -- classic -----------------------------------------------------------------------------------


def find_coordinator_frame(key: str, number: int, *, kind: int = 0) -> bytes:
    """FindCoordinator v2; kind 0 is a group, 1 a transactional id."""
    body = wire.string(key) + struct.pack(">b", kind)
    return wire.frame(wire.FIND_COORDINATOR, 2, number, body)


def join_frame(
    group: str,
    member_id: str,
    topic: str,
    number: int,
    *,
    rebalance_timeout_ms: int = 60_000,
    session_timeout_ms: int = 45_000,
) -> bytes:
    """JoinGroup v5 of a consumer that subscribes to one topic."""
    subscription = struct.pack(">h", 1) + wire.array([wire.string(topic)])
    subscription += wire.blob(b"") + wire.array([])
    body = (
        wire.string(group)
        + struct.pack(">ii", session_timeout_ms, rebalance_timeout_ms)
        + wire.string(member_id)
        + wire.string(None)
        + wire.string("consumer")
        + wire.array([wire.string("range") + wire.blob(subscription)])
    )
    return wire.frame(wire.JOIN_GROUP, 5, number, body)


@dataclass(frozen=True, slots=True)
class Joined:
    """A JoinGroup v5 answer; `members` are known to the leader alone."""

    error_code: int
    generation: int
    leader: str
    member_id: str
    members: tuple[str, ...]

    @classmethod
    def read(cls, answer: bytes) -> "Joined":
        """Read an answer given from its correlation id on."""
        reader = wire.Reader(answer)
        reader.take(8)  # correlation id, throttle time
        error_code, generation = reader.int16(), reader.int32()
        reader.string()
        leader, member_id = reader.string() or "", reader.string() or ""
        members = []
        for _ in reader.times():
            members.append(reader.string() or "")
            reader.string()
            reader.blob()
        return cls(error_code, generation, leader, member_id, tuple(members))


def sync_frame(
    group: str,
    generation: int,
    member_id: str,
    number: int,
    *,
    topic: str,
    owned: Mapping[str, Iterable[int]],
) -> bytes:
    """SyncGroup v3; a leader says what each member owns, the others nothing."""
    assignments = []
    for member, partitions in owned.items():
        item = wire.string(topic) + wire.array(struct.pack(">i", one) for one in partitions)
        assignment = struct.pack(">h", 1) + wire.array([item]) + wire.blob(b"")
        assignments.append(wire.string(member) + wire.blob(assignment))
    body = (
        wire.string(group)
        + struct.pack(">i", generation)
        + wire.string(member_id)
        + wire.string(None)
        + wire.array(assignments)
    )
    return wire.frame(wire.SYNC_GROUP, 3, number, body)


def assigned_partitions(answer: bytes) -> tuple[int, list[int]]:
    """Error code of a SyncGroup v3 answer, and the partitions in it, of whatever topic."""
    reader = wire.Reader(answer)
    reader.take(8)
    error_code, assignment = reader.int16(), wire.Reader(reader.blob())
    found: list[int] = []
    if not error_code:
        assignment.int16()
        for _ in assignment.times():
            assignment.string()
            found += [assignment.int32() for _ in assignment.times()]
    return error_code, found


def classic_heartbeat_frame(group: str, generation: int, member_id: str, number: int) -> bytes:
    """Heartbeat v3."""
    body = wire.string(group) + struct.pack(">i", generation) + wire.string(member_id)
    return wire.frame(wire.HEARTBEAT, 3, number, body + wire.string(None))


def classic_leave_frame(group: str, member_id: str, number: int) -> bytes:
    """LeaveGroup v1."""
    return wire.frame(wire.LEAVE_GROUP, 1, number, wire.string(group) + wire.string(member_id))


def plain_error(answer: bytes) -> int:
    """The error code of a non-flexible answer that begins with throttle time and error code."""
    code: int
    (code,) = struct.unpack_from(">h", answer, 8)
    return code


# -- KIP-848 -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member says of itself when it joins."""

    topics: Sequence[str]
    rebalance_timeout_ms: int = 300_000
    assignor: str | None = None
    regex: str | None = None


def consumer_heartbeat_frame(
    group: str,
    member_id: str,
    epoch: int,
    number: int,
    *,
    subscription: Subscription | None = None,
    owned: Assignment | None = None,
) -> bytes:
    """ConsumerGroupHeartbeat v1; what is None has not changed since it was last said."""
    topics = assignor = regex = None
    timeout_ms = -1
    if subscription is not None:
        topics, assignor = subscription.topics, subscription.assignor
        regex = subscription.regex
        timeout_ms = subscription.rebalance_timeout_ms
    body = (
        flexible.string(group)
        + flexible.string(member_id)
        + struct.pack(">i", epoch)
        + flexible.string(None)  # instance id
        + flexible.string(None)  # rack
        + struct.pack(">i", timeout_ms)
        + flexible.array(None if topics is None else map(flexible.string, topics))
        + flexible.string(regex)
        + flexible.string(assignor)
        + flexible.array(
            None
            if owned is None
            else (topic.bytes + flexible.int32s(who) + NO_TAGS for topic, who in owned.items())
        )
        + NO_TAGS
    )
    return wire.frame(CONSUMER_GROUP_HEARTBEAT, 1, number, body, flexible=True)


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """A ConsumerGroupHeartbeat answer; `assignment` is None when nothing changed."""

    error_code: int
    error_message: str | None
    epoch: int
    interval_s: float
    assignment: Assignment | None

    @classmethod
    def read(cls, answer: bytes) -> "HeartbeatAnswer":
        """Read an answer given from its correlation id on."""
        reader = answer_of(answer)
        reader.int32()
        error_code, message = reader.int16(), reader.compact_string()
        reader.compact_string()  # member id
        epoch, interval_ms = reader.int32(), reader.int32()
        assignment: Assignment | None = None
        if reader.int8() >= 0:
            assignment = {}
            for _ in reader.compact_times():
                topic = reader.uuid()
                assignment[topic] = tuple(reader.int32s())
                reader.tags()
            reader.tags()
        reader.tags()
        return cls(error_code, message, epoch, interval_ms / 1000, assignment)


def topic_id_frame(topic: str, number: int) -> bytes:
    """Metadata v12 of one topic: the newest a client of today sends."""
    name = bytes(16) + flexible.string(topic) + NO_TAGS
    body = flexible.array([name]) + b"\x00\x00" + NO_TAGS
    return wire.frame(wire.METADATA, _METADATA_VERSION, number, body, flexible=True)


# -- offsets -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommitFrame:
    """An OffsetCommit v8 with holes for correlation id and offsets."""

    template: bytes
    offsets_at: tuple[int, ...]

    @classmethod
    def of(
        cls, group: str, generation: int, member_id: str, topic: str, partitions: Sequence[int]
    ) -> "CommitFrame":
        """One topic; generation -1 and no member id are a consumer outside any group."""
        mark = b"\x01\x02\x03\x04\x05\x06\x07\x08"
        items = (
            struct.pack(">i", index) + mark + struct.pack(">i", -1) + flexible.string("") + NO_TAGS
            for index in partitions
        )
        body = (
            flexible.string(group)
            + struct.pack(">i", generation)
            + flexible.string(member_id)
            + flexible.string(None)
            + flexible.array([flexible.string(topic) + flexible.array(items) + NO_TAGS])
            + NO_TAGS
        )
        template = wire.frame(OFFSET_COMMIT, 8, 0, body, flexible=True)
        holes, position = [], template.find(mark)
        while position >= 0:
            holes.append(position)
            position = template.find(mark, position + 8)
        return cls(template, tuple(holes))

    def filled(self, number: int, offset: int) -> bytearray:
        """The request with one offset for all its partitions."""
        frame = bytearray(self.template)
        struct.pack_into(">i", frame, 8, number)
        for position in self.offsets_at:
            struct.pack_into(">q", frame, position, offset)
        return frame


def commit_errors(answer: bytes) -> set[int]:
    """The error codes other than 0 in an OffsetCommit v8 answer."""
    return flexible.partition_codes(answer) - {0}


def offset_fetch_frame(group: str, topic: str, partitions: Iterable[int], number: int) -> bytes:
    """OffsetFetch v3."""
    indices = wire.array(struct.pack(">i", index) for index in partitions)
    body = wire.string(group) + wire.array([wire.string(topic) + indices])
    return wire.frame(OFFSET_FETCH, 3, number, body)


def fetched_offsets(answer: bytes) -> dict[int, int]:
    """Partition to committed offset, of whatever topic (OffsetFetch v3)."""
    reader = wire.Reader(answer)
    reader.take(8)
    found = {}
    for _ in reader.times():
        reader.string()
        for _ in reader.times():
            index, found_offset = reader.int32(), reader.int64()
            reader.string()
            code = reader.int16()
            if code:
                raise wire.WireError(f"OffsetFetch: error {code}")
            found[index] = found_offset
    code = reader.int16()
    if code:
        raise wire.WireError(f"OffsetFetch: error {code}")
    return found
