"""DescribeTopicPartitions (API key 75), version 0.

Behaviour:
- Topics in order of name, from the cursor on; no topics in the request means all of them.
- At most `response_partition_limit` partitions, and `max.request.partition.size.limit`; the rest is
  fetched with the cursor of the response. The cursor may name a topic that has gone meanwhile.
- Topics that do not exist do not count towards the limit; they are reported only if requested.
- Of a partition whose ISR is too small or empty, the replicas that may lead it next, or were the
  last that could: whose return an operator waits for.
- A cursor outside the requested topics, or with a negative partition: INVALID_REQUEST for all.

Versions:
- 0  KIP-966
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.controller.authorized_operations import TOPIC_OPERATIONS
from broker.controller.images.replica_directories import is_led_nowhere
from broker.controller.images.topic_names import INTERNAL_TOPICS, name_problem
from broker.controller.topics.topic_metadata import NO_LEADER, offline_replicas
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage, PartitionImage, TopicImage
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DESCRIBE_TOPIC_PARTITIONS
VERSIONS = (0, 0)


def handle(
    services: "Services", context: "RequestContext", request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Answer one page from the image."""
    image = services.controller.image
    cursor = request.cursor
    all_topics = not request.topics
    names = set(image.topics) if all_topics else {topic.name for topic in request.topics}
    if cursor is not None:
        outside = not all_topics and cursor.topic_name not in names
        if outside or cursor.partition_index < 0:
            return _refusal(request)
        names = {name for name in names if name >= cursor.topic_name}
    limit = min(
        services.settings.max_request_partition_size_limit, request.response_partition_limit
    )
    first = {cursor.topic_name: cursor.partition_index} if cursor is not None else {}
    listener = context.connection.listener_name
    return _page(image, sorted(names), first, max(limit, 1), listener, with_missing=not all_topics)


def _page(
    image: "ClusterImage",
    names: Iterable[str],
    first: dict[str, int],
    limit: int,
    listener: str,
    *,
    with_missing: bool,
) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse()
    remaining = limit
    for name in names:
        if remaining == 0:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=0
            )
            break
        topic = image.topics.get(name)
        if topic is None:
            if with_missing:
                response.topics.append(_missing(name))
            continue
        start = first.get(name, 0)
        end = min(start + remaining, len(topic.partitions))
        partitions = topic.partitions[start:end]
        response.topics.append(_topic(image, topic, partitions, listener))
        remaining -= len(partitions)
        if end < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=end
            )
            break
    return response


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name_problem(name) is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=int(error),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _topic(
    image: "ClusterImage",
    topic: "TopicImage",
    partitions: "Iterable[PartitionImage]",
    listener: str,
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=int(ErrorCode.NONE),
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=[_partition(image, partition, listener) for partition in partitions],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(
    image: "ClusterImage", partition: "PartitionImage", listener: str
) -> DescribeTopicPartitionsResponsePartition:
    leader = image.brokers.get(partition.leader)
    reachable = (
        leader is not None and listener in leader.listeners and not is_led_nowhere(image, partition)
    )
    return DescribeTopicPartitionsResponsePartition(
        error_code=int(ErrorCode.NONE),
        partition_index=partition.index,
        leader_id=partition.leader if reachable else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(image, partition, listener),
    )


def _refusal(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(
                error_code=int(ErrorCode.INVALID_REQUEST),
                name=topic.name,
                is_internal=topic.name in INTERNAL_TOPICS,
            )
            for topic in request.topics
        ]
    )
