"""A classic group: its members, its generation, protocol and leader.

Only state and its invariants; timers, requests and the log are in `broker.groups.classic.protocol`.

Source: Kafka, ClassicGroup.java, ClassicGroupMember.java; KIP-345 (static members).
"""

from collections.abc import Callable, Iterator

from typing_extensions import override

from broker.coordinator.outcome import KeyValue
from broker.groups.classic.classic_group_state import VALID_PREVIOUS_STATES, ClassicGroupState
from broker.groups.state.group import Group, GroupType
from broker.groups.state.group_shard import GroupShard
from broker.runtime.deadline import Deadline
from broker.runtime.timer import TimerHandle
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.internal import consumer_subscription
from protocol.internal.consumer_offsets import NO_TIMESTAMP, encode_group_metadata_key
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse

Protocols = tuple[tuple[str, bytes], ...]
"""A member's protocols: (protocol name, metadata), the preferred one first, names unique."""

JoinReply = Callable[[JoinGroupResponse], None]
SyncReply = Callable[[SyncGroupResponse], None]


class ClassicMember:
    """One member of a group."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_reply",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
        "sync_reply",
    )

    def __init__(
        self,
        *,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        session: Deadline,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.session = session
        # A member that has never completed a rebalance cannot send heartbeats: it is timed by how
        # long it waits in JoinGroup instead.
        self.is_new = False
        self.join_reply: JoinReply | None = None
        self.sync_reply: SyncReply | None = None

    def metadata(self, protocol_name: str | None) -> bytes:
        """The member's metadata for a protocol; empty when it does not support the protocol."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether the member is excused from heartbeats because its request is parked here."""
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)


class ClassicGroup(Group):
    """A group whose members assign partitions among themselves.

    `protocol_type` None and no members: a *simple* group, which only stores offsets.
    """

    __slots__ = (
        "_protocol_type",
        "_supported_protocols",
        "awaiting_join",
        "current_state_timestamp_ms",
        "generation",
        "group_id",
        "join_timer",
        "leader_id",
        "members",
        "new_member_added",
        "pending_members",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "state",
        "static_members",
        "subscribed_topics",
        "sync_timer",
        "type",
    )

    def __init__(
        self,
        group_id: str,
        *,
        state: ClassicGroupState,
        current_state_timestamp_ms: int,
        generation: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.type = GroupType.CLASSIC
        self.state = state
        self.previous_state = ClassicGroupState.DEAD
        self.current_state_timestamp_ms = current_state_timestamp_ms
        self.generation = generation
        self._protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        # Pending members: they have an id and have not joined with it yet (MEMBER_ID_REQUIRED).
        self.pending_members: dict[str, Deadline] = {}
        self.pending_sync: set[str] = set()
        self.awaiting_join = 0
        self.new_member_added = False
        # None: unknown, because a member's metadata could not be read.
        self.subscribed_topics: frozenset[str] | None = None
        # When the join phase ends, and when members that send no SyncGroup are removed.
        self.join_timer: TimerHandle | None = None
        self.sync_timer: TimerHandle | None = None
        self._supported_protocols: dict[str, int] = {}

    # -- properties --

    @property
    @override
    def protocol_type(self) -> str | None:
        """The protocol type; None for a group that never had members."""
        return self._protocol_type

    @property
    @override
    def state_name(self) -> str:
        """The state as ListGroups spells it."""
        return self.state.value

    @property
    @override
    def member_count(self) -> int:
        """Number of members, static ones that are away included."""
        return len(self.members)

    @property
    @override
    def is_empty(self) -> bool:
        """Whether the group is in state Empty."""
        return self.state is ClassicGroupState.EMPTY

    @property
    @override
    def is_expecting_members(self) -> bool:
        """Whether there are pending members."""
        return bool(self.pending_members)

    @property
    @override
    def generation_or_epoch(self) -> int:
        """The generation."""
        return self.generation

    def is_in(self, *states: ClassicGroupState) -> bool:
        """Whether the group is in one of the states."""
        return self.state in states

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether members are consumers, so that their metadata can be read here."""
        return self.protocol_type == consumer_subscription.PROTOCOL_TYPE

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may start now, rather than being under way already."""
        return self.state in VALID_PREVIOUS_STATES[ClassicGroupState.PREPARING_REBALANCE]

    @property
    def has_all_members_joined(self) -> bool:
        """Whether all members, pending ones included, have joined."""
        return len(self.members) == self.awaiting_join and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """Longest rebalance timeout of all members."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    @override
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic; assumed of consumers whose metadata is unreadable."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def not_yet_rejoined(self) -> Iterator[ClassicMember]:
        """Members of the last generation that have not sent JoinGroup in this rebalance."""
        return (m for m in self.members.values() if m.join_reply is None)

    # -- offsets --

    @override
    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> ErrorCode:
        """Check that this sender may commit now.

        Generation -1 with no member: an administrator or a simple consumer, only while the group
        is empty; transactions of old clients always. Otherwise a member of this generation, whose
        assignment is known.
        """
        if generation_or_epoch < 0 and self.state is ClassicGroupState.EMPTY:
            return ErrorCode.NONE
        if generation_or_epoch >= 0 or member_id or group_instance_id is not None:
            code = self.validate_member(member_id, group_instance_id)
            if code is not ErrorCode.NONE:
                return code
            if generation_or_epoch != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
        elif not transactional and self.state is not ClassicGroupState.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not transactional and self.state is ClassicGroupState.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    @override
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Always NONE."""
        return ErrorCode.NONE

    @override
    def offset_expiry_base(self) -> int | None:
        """When offsets' retention begins: a time in ms, -1 each offset's commit, None never."""
        if self._protocol_type is None:
            return NO_TIMESTAMP
        if self.state is ClassicGroupState.EMPTY:
            return self.current_state_timestamp_ms
        if (
            self.state is ClassicGroupState.STABLE
            and self.uses_consumer_protocol
            and self.subscribed_topics is not None
        ):
            return NO_TIMESTAMP
        return None

    @override
    def member_sessions(self) -> list[Deadline]:
        """One for each member."""
        return [member.session for member in self.members.values()]

    @override
    def tombstones(self) -> list[KeyValue]:
        """The one record that deletes the group."""
        return [(encode_group_metadata_key(self.group_id), None)]

    @override
    def die(self, now_ms: int) -> None:
        """Move to state Dead; pending members are dropped."""
        for pending in self.pending_members.values():
            pending.cancel()
        self.transition_to(ClassicGroupState.DEAD, now_ms)

    # -- members --

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Check a member's id against its instance id.

        Returns:
            FENCED_INSTANCE_ID when another process has taken the instance id since,
            UNKNOWN_MEMBER_ID when the member is not in the group, else NONE.
        """
        if group_instance_id is not None:
            existing = self.static_members.get(group_instance_id)
            if existing is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if existing != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    def add(self, member: ClassicMember, join_reply: JoinReply | None, protocol_type: str) -> None:
        """Add a member; the first one decides the protocol type and leads."""
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self._protocol_type = protocol_type or None
        assert self.protocol_type == (protocol_type or None)
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self.set_join_reply(member, join_reply)
        self.pending_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member and its timer; another one leads if it was the leader.

        The caller has answered its parked requests.
        """
        member = self.members.pop(member_id, None)
        if member is not None:
            assert member.join_reply is None
            member.session.cancel()
            self._count_protocols(member, -1)
            if self.static_members.get(member.group_instance_id or "") == member_id:
                del self.static_members[member.group_instance_id or ""]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        pending = self.pending_members.pop(member_id, None)
        if pending is not None:
            pending.cancel()
        self.pending_sync.discard(member_id)

    def replace_static(self, old: ClassicMember, new: ClassicMember) -> None:
        """Replace `old` by `new`, which has the same instance id: KIP-345.

        The caller has answered the requests that were parked for `old`.
        """
        assert old.join_reply is None
        assert old.sync_reply is None
        assert old.group_instance_id is not None
        del self.members[old.member_id]
        old.session.cancel()
        self._count_protocols(old, -1)
        self.members[new.member_id] = new
        self._count_protocols(new, 1)
        if new.join_reply is not None:
            self.awaiting_join += 1
        if self.leader_id == old.member_id:
            self.leader_id = new.member_id
        self.static_members[old.group_instance_id] = new.member_id
        if old.member_id in self.pending_sync:
            self.pending_sync.remove(old.member_id)
            self.pending_sync.add(new.member_id)

    def update(
        self,
        member: ClassicMember,
        *,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Update a rejoining member's metadata and timeouts."""
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def set_join_reply(self, member: ClassicMember, join_reply: JoinReply | None) -> None:
        """Park a member's JoinGroup (None: drop it), and count it."""
        self.awaiting_join += (join_reply is not None) - (member.join_reply is not None)
        member.join_reply = join_reply

    def elect_joined_leader(self) -> bool:
        """Make a member that has joined the leader; False when none has."""
        leader = self.members.get(self.leader_id or "")
        if leader is None:
            return False
        if leader.join_reply is None:
            joined = next((m for m in self.members.values() if m.join_reply is not None), None)
            if joined is None:
                return False
            self.leader_id = joined.member_id
        return True

    # -- protocol and generation --

    def supports_protocols(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols could be in the group.

        An empty group takes any type. Otherwise type and at least one protocol must be those of
        all members.
        """
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        return self.protocol_type == protocol_type and any(
            self._supported_protocols.get(name, 0) == len(self.members) for name, _ in protocols
        )

    def select_protocol(self) -> str | None:
        """The protocol with most votes among those that all members support.

        Each member votes for the first one of its list. On a tie the one that was voted for first
        wins, by the members' order of joining.
        """
        member_count = len(self.members)
        votes: dict[str, int] = {}
        for member in self.members.values():
            for name, _ in member.protocols:
                if self._supported_protocols[name] == member_count:
                    votes[name] = votes.get(name, 0) + 1
                    break
        return max(votes, key=votes.__getitem__, default=None)

    def start_generation(self, now_ms: int) -> None:
        """End the join phase: next generation, protocol by vote; Empty if there are no members."""
        self.generation += 1
        self.pending_sync.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.subscribed_topics = self.compute_subscribed_topics()
            self.transition_to(ClassicGroupState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.subscribed_topics = self.compute_subscribed_topics()
            self.transition_to(ClassicGroupState.EMPTY, now_ms)

    def transition_to(self, state: ClassicGroupState, now_ms: int) -> None:
        """Change the state; only along the arrows of `ClassicGroupState`."""
        assert self.state in VALID_PREVIOUS_STATES[state], (
            f"group {self.group_id}: {self.state} -> {state}"
        )
        self.previous_state = self.state
        self.state = state
        self.current_state_timestamp_ms = now_ms

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """Topics that the members subscribe to under the selected protocol; None: unknown."""
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        # Members mostly send the same bytes: read each once.
        for metadata in {m.metadata(self.protocol_name) for m in self.members.values()}:
            try:
                topics.update(consumer_subscription.subscribed_topics(metadata))
            except DecodeError:
                return None
        return frozenset(topics)

    def _count_protocols(self, member: ClassicMember, change: int) -> None:
        counts = self._supported_protocols
        for name, _ in member.protocols:
            count = counts.get(name, 0) + change
            if count:
                counts[name] = count
            else:
                del counts[name]


def create_classic_group(shard: GroupShard, group_id: str) -> ClassicGroup:
    """Make a new, empty group; nothing is written until it has a generation.

    Raises:
        TooManyGroupsError: No further group fits.
    """
    group = ClassicGroup(
        group_id,
        state=ClassicGroupState.EMPTY,
        current_state_timestamp_ms=shard.clock.now_ms(),
    )
    shard.add_group(group)
    return group
