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

from broker.requests.answer import Answer
from broker.requests.inter_broker import is_inter_broker
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.share.services import ShareServices

P = TypeVar("P")
R = TypeVar("R")
A = TypeVar("A")


def refusal(services: "ShareServices", context: "RequestContext") -> ErrorCode | None:
    """Why no partition of the request is served: it has not come in where brokers call."""
    if is_inter_broker(services.settings, context):
        return None
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class TopicOf(Protocol[P]):
    """A topic of the request."""

    topic_id: UUID
    partitions: list[P]


def for_each_partition(
    topics: Sequence[TopicOf[P]],
    begin: Callable[[UUID, P, Callable[[R], None]], None],
    response: Callable[[list[tuple[UUID, list[R]]]], A],
) -> "A | Answer[A]":
    """Start all partitions, and answer when the last has its result; results keep their order."""
    answer: Answer[A] = Answer()
    results: list[tuple[UUID, list[R | None]]] = [
        (topic.topic_id, [None] * len(topic.partitions)) for topic in topics if topic.partitions
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
    for topic_at, topic in enumerate(topic for topic in topics if topic.partitions):
        for at, wanted in enumerate(topic.partitions):
            begin(topic.topic_id, wanted, partial(done, topic_at, at))
    return answer.result()
