"""The interface of assignors: their input and output.

An assignor is a pure function of members and topics: no clock, no chance, no reading. The same
group gives the same answer whatever the order of the dicts, so it may run in another thread, and
again after a failover.

Source: Kafka, group-coordinator-api, ConsumerGroupPartitionAssignor.java, GroupSpec.java,
SubscribedTopicDescriber.java.
"""

from collections.abc import Mapping, Set
from typing import NamedTuple, Protocol, TypeAlias
from uuid import UUID

from broker.groups.modern.assignment import NO_PARTITIONS, Assignment


class AssignorError(Exception):
    """The members cannot be served: one subscribed to a topic that does not exist."""


class MemberSpec(NamedTuple):
    """A member, as the input of an assignor.

    `assignment` is the member's current target, of any topics: those it no longer subscribes to
    are taken away.
    """

    instance_id: str | None
    rack_id: str | None
    subscribed_topic_ids: Set[UUID]
    assignment: Assignment = NO_PARTITIONS


class TopicSpec(NamedTuple):
    """A topic, as the input of an assignor; `racks` by partition, empty when not known.

    Neither built-in assignor uses racks: Kafka's stopped in 4.0.
    """

    name: str
    partition_count: int
    racks: tuple[frozenset[str], ...] = ()


Members: TypeAlias = Mapping[str, MemberSpec]
"""By member id."""

Topics: TypeAlias = Mapping[UUID, TopicSpec]
"""By topic id; at least those with subscribers."""


class Assignor(Protocol):
    """A strategy of assigning partitions."""

    @property
    def name(self) -> str:
        """As members and configuration call it."""
        ...

    def assign(self, members: Members, topics: Topics) -> dict[str, Assignment]:
        """The next target of every member, also of those that get nothing.

        Raises:
            AssignorError: A member subscribed to a topic that is not among `topics`.
        """
        ...


def topic_order(topic_id: UUID) -> tuple[int, int]:
    """Sorts topic ids as Kafka does: two signed numbers of 64 bits."""
    number = topic_id.int
    return _signed(number >> 64), _signed(number & 0xFFFF_FFFF_FFFF_FFFF)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def partition_count(topics: Topics, topic_id: UUID) -> int:
    """How many partitions a topic has.

    Raises:
        AssignorError: There is no such topic.
    """
    topic = topics.get(topic_id)
    if topic is None:
        raise AssignorError(f"members subscribed to topic {topic_id}, which does not exist")
    return topic.partition_count
