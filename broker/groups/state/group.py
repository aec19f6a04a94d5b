"""The interface of a group, whatever protocol its members speak.

    shard.groups: group id ──> Group ──┬── ClassicGroup     JoinGroup, SyncGroup, Heartbeat
                                       ├── ConsumerGroup    ConsumerGroupHeartbeat (KIP-848)
                                       └── ShareGroup       ShareGroupHeartbeat (KIP-932)

Source of the shape: Kafka, Group.java.
"""

from abc import ABC, abstractmethod
from enum import StrEnum

from broker.coordinator.outcome import KeyValue
from broker.runtime.deadline import Deadline
from protocol.error_codes import ErrorCode


class GroupType(StrEnum):
    """Kafka's names, as ListGroups v5 spells them."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"


class Group(ABC):
    """One group.

    Attributes:
        group_id: Its name.
        type: Which protocol.
    """

    __slots__ = ()

    group_id: str
    type: GroupType

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state as ListGroups and DescribeGroups spell it: Empty, Stable, Assigning, ..."""

    @property
    @abstractmethod
    def protocol_type(self) -> str | None:
        """`consumer` for consumers; None for a group that never had members."""

    @property
    @abstractmethod
    def member_count(self) -> int:
        """Number of members, static ones that are away included."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether it has no members: only then may it be deleted."""

    @property
    @abstractmethod
    def is_expecting_members(self) -> bool:
        """Whether there are pending members."""

    @property
    @abstractmethod
    def generation_or_epoch(self) -> int:
        """Goes up whenever members change: the generation, or the group epoch."""

    @abstractmethod
    def die(self, now_ms: int) -> None:
        """Move to state Dead: the group was deleted, or has another coordinator."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether some member reads the topic; its offsets are not to be removed then."""

    @abstractmethod
    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> ErrorCode:
        """Check that this sender may commit now; return NONE or its error code.

        `api_version` is OffsetCommit's, or TxnOffsetCommit's with `transactional`.
        """

    @abstractmethod
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Check that this member may fetch (OffsetFetch v9+); without an id every client may."""

    @abstractmethod
    def offset_expiry_base(self) -> int | None:
        """When offsets' retention begins: a time in ms, -1 each offset's commit, None never."""

    @abstractmethod
    def member_sessions(self) -> list[Deadline]:
        """The session of every member; its expiry may remove the member."""

    def expire_sessions(self) -> None:
        """Remove members whose session has expired, before the group is described."""
        for session in self.member_sessions():
            session.expire_if_due()

    @abstractmethod
    def tombstones(self) -> list[KeyValue]:
        """Records that delete the group itself from the log, its offsets not included."""
