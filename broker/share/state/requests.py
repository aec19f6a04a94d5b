"""Common part of the five requests for share group state.

They list topics and partitions; each partition has its own result, and one response is sent when
all of them are complete. A request without a group, and topics without partitions, get no results,
as in Kafka. Brokers send them: on a listener for clients, where brokers have one of their own, each
partition gets CLUSTER_AUTHORIZATION_FAILED.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import UUID

from broker.coordinator.persister import SharePartitionKey
from broker.requests.answer import Answer
from broker.requests.inter_broker import is_inter_broker
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.share.services import ShareServices


class PartitionOf(Protocol):
    """A partition of the request."""

    partition: int


P = TypeVar("P", bound=PartitionOf)
R = TypeVar("R")
A = TypeVar("A")


class TopicOf(Protocol[P]):
    """A topic of the request."""

    topic_id: UUID
    partitions: list[P]


class StateRequest(Protocol[P]):
    """A request for the state of a group's share-partitions."""

    group_id: str

    @property
    def topics(self) -> Sequence[TopicOf[P]]:
        """Its topics."""
        ...


def for_each_partition(
    services: "ShareServices",
    context: "RequestContext",
    request: StateRequest[P],
    begin: Callable[[SharePartitionKey, P, Callable[[R], None]], None],
    *,
    refuse: Callable[[int, ErrorCode], R],
    response: Callable[[list[tuple[UUID, list[R]]]], A],
) -> "A | Answer[A]":
    """Start all partitions, and answer when the last has its result; results keep their order.

    Args:
        services: Of the broker.
        context: Of the request: whether it has come in where brokers call.
        request: Names the group, topics and partitions.
        begin: Calls the share coordinator for one partition.
        refuse: The result of a partition that is not served.
        response: Made of all results, by topic.
    """
    answer: Answer[A] = Answer()
    topics = [topic for topic in request.topics if topic.partitions] if request.group_id else []
    results: list[tuple[UUID, list[R | None]]] = [
        (topic.topic_id, [None] * len(topic.partitions)) for topic in topics
    ]
    left = sum(len(topic.partitions) for topic in topics)

    def finish() -> None:
        answer(
            response(
                [(topic, [one for one in found if one is not None]) for topic, found in results]
            )
        )

    def done(topic_at: int, at: int, result: R) -> None:
        nonlocal left
        results[topic_at][1][at] = result
        left -= 1
        if not left:
            finish()

    if not left:
        finish()
    is_served = is_inter_broker(services.settings, context)
    for topic_at, topic in enumerate(topics):
        for at, wanted in enumerate(topic.partitions):
            this_done = partial(done, topic_at, at)
            if is_served:
                key = SharePartitionKey(request.group_id, topic.topic_id, wanted.partition)
                begin(key, wanted, this_done)
            else:
                this_done(refuse(wanted.partition, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    return answer.result()
