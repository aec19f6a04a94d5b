"""OffsetDelete (API key 47), version 0 (KIP-496).

Behaviour:
- Deletes single offsets of a group. Topics that consumers of the group still subscribe to are
  GROUP_SUBSCRIBED_TO_TOPIC; groups of another kind have to be empty.
"""

from typing import TYPE_CHECKING

from broker.requests.answer import Answer
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.OFFSET_DELETE
VERSIONS = (0, 0)


def handle(
    services: "Services", context: "RequestContext", request: OffsetDeleteRequest
) -> "OffsetDeleteResponse | Answer[OffsetDeleteResponse]":
    """Delete offsets."""
    image = services.controller.image
    response = OffsetDeleteResponse(topics=[])
    asked: list[tuple[str, int]] = []
    results: list[OffsetDeleteResponsePartition] = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            result = OffsetDeleteResponsePartition(partition_index=index)
            partitions.append(result)
            if image.partition(topic.name, index) is None:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                asked.append((topic.name, index))
                results.append(result)
        response.topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    answer: Answer[OffsetDeleteResponse] = Answer()

    def done(code: ErrorCode, codes: list[ErrorCode]) -> None:
        if code is not ErrorCode.NONE:
            answer(OffsetDeleteResponse(error_code=code, topics=[]))
            return
        for result, partition_code in zip(results, codes, strict=True):
            result.error_code = partition_code
        answer(response)

    services.groups.delete_offsets(request.group_id, asked, done)
    return answer.result()
