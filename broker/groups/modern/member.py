"""The interface of modern groups' members, for the group, its targets and its records.

Source: Kafka, ModernGroupMember.java.
"""

from typing import Final, NamedTuple, Protocol

from broker.groups.modern.assignment import Assignment

JOIN_EPOCH: Final = 0
"""Member epoch of a request to join, or to join again after being fenced."""

LEAVE_EPOCH: Final = -1
"""Member epoch of a request to leave; also the epoch of a partition without an owner."""


class Client(NamedTuple):
    """Sender of a heartbeat."""

    client_id: str
    client_host: str


class ModernGroupMember(Protocol):
    """A member, as a value: a change makes a new one."""

    @property
    def member_id(self) -> str:
        """Its id."""
        ...

    @property
    def member_epoch(self) -> int:
        """Epoch of the target that it works on; 0 when it has just joined."""
        ...

    @property
    def subscribed_topic_names(self) -> frozenset[str]:
        """Topics that it subscribes to by name."""
        ...

    @property
    def assigned(self) -> Assignment:
        """Partitions that it owns."""
        ...
