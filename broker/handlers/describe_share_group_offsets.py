"""DescribeShareGroupOffsets (API key 90), versions 0 to 1.

Behaviour:
- Start offsets of share groups in partitions, or in all of the group's. Without one it is -1, which
  is no error; nor is a topic or group that does not exist.
- Lag is the number of records from the start offset to the end that are not done; -1 if it is not
  known. The end is asked of the partition's leader (`broker.share.routing.end_offsets`); where that
  cannot tell it, its error is the partition's.

Versions:
- 0   KIP-932
- 1   lag       KIP-1226
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from broker.coordinator.persister import UNINITIALIZED_OFFSET, UNKNOWN_COUNT, ShareSummary
from broker.requests.answer import Answer
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import TopicImage
    from broker.requests.request_context import RequestContext
    from broker.services import Services
    from broker.share.routing.end_offsets import Ends

API_KEY = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
VERSIONS = (0, 1)

NO_LAG = -1
NO_LEADER_EPOCH = 0

GroupDone = Callable[[DescribeShareGroupOffsetsResponseGroup], None]
Summaries = Mapping[UUID, Mapping[int, ShareSummary | None]]


def handle(
    services: "Services", context: "RequestContext", request: DescribeShareGroupOffsetsRequest
) -> "DescribeShareGroupOffsetsResponse | Answer[DescribeShareGroupOffsetsResponse]":
    """Describe groups' start offsets."""
    answer: Answer[DescribeShareGroupOffsetsResponse] = Answer()
    groups: dict[int, DescribeShareGroupOffsetsResponseGroup] = {}

    def done(position: int, group: DescribeShareGroupOffsetsResponseGroup) -> None:
        groups[position] = group
        if len(groups) == len(request.groups):
            answer(
                DescribeShareGroupOffsetsResponse(
                    groups=[groups[position] for position in range(len(request.groups))]
                )
            )

    if not request.groups:
        return DescribeShareGroupOffsetsResponse(groups=[])
    for position, group in enumerate(request.groups):
        try:
            _describe(services, group, partial(done, position))
        except ApiError as error:
            done(
                position,
                DescribeShareGroupOffsetsResponseGroup(
                    group_id=group.group_id,
                    topics=[],
                    error_code=error.code,
                    error_message=error.message or error.code.message,
                ),
            )
    return answer.result()


def _describe(
    services: "Services", group: DescribeShareGroupOffsetsRequestGroup, done: GroupDone
) -> None:
    if not services.groups.serves_share_groups:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    image = services.controller.image
    asked: dict[UUID, Sequence[int]] | None = None
    unknown: list[DescribeShareGroupOffsetsRequestTopic] = []
    if group.topics is not None:
        asked = {}
        for topic in group.topics:
            known = image.topics.get(topic.topic_name)
            if known is None:
                unknown.append(topic)
            else:
                asked[known.topic_id] = topic.partitions

    topics = image.topics_by_id

    def summarized(found: Summaries) -> None:
        # The topic may have been deleted meanwhile.
        there = [
            (topics[topic_id], states) for topic_id, states in found.items() if topic_id in topics
        ]
        services.end_offsets.find(
            [
                TopicPartition(topic.name, index)
                for topic, states in there
                for index, summary in states.items()
                if summary is not None and _has_lag(summary)
            ],
            lambda ends: done(
                DescribeShareGroupOffsetsResponseGroup(
                    group_id=group.group_id,
                    topics=[
                        *(_topic(topic, states, ends) for topic, states in there),
                        *(_unknown_topic(topic) for topic in unknown),
                    ],
                )
            ),
        )

    shares = services.groups.share_protocol(group.group_id)
    shares.administration.summaries(group.group_id, asked, summarized)


def _has_lag(summary: ShareSummary) -> bool:
    return (
        summary.start_offset != UNINITIALIZED_OFFSET
        and summary.delivery_complete_count != UNKNOWN_COUNT
    )


def _topic(
    topic: "TopicImage", states: Mapping[int, ShareSummary | None], ends: "Ends"
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            _partition(index, summary, ends.get(TopicPartition(topic.name, index)))
            for index, summary in states.items()
        ],
    )


def _partition(
    index: int, summary: ShareSummary | None, end: int | ErrorCode | None
) -> DescribeShareGroupOffsetsResponsePartition:
    if summary is None:
        return _nowhere(index)
    if isinstance(end, ErrorCode):
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, error_code=end, error_message=end.message
        )
    lag = NO_LAG
    if end is not None:
        lag = max(end - summary.start_offset - summary.delivery_complete_count, 0)
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=summary.start_offset,
        leader_epoch=max(summary.leader_epoch, NO_LEADER_EPOCH),
        lag=lag,
    )


def _nowhere(index: int) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=UNINITIALIZED_OFFSET,
        leader_epoch=NO_LEADER_EPOCH,
        lag=NO_LAG,
    )


def _unknown_topic(
    topic: DescribeShareGroupOffsetsRequestTopic,
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, partitions=[_nowhere(index) for index in topic.partitions]
    )
