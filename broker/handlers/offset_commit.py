"""OffsetCommit (API key 8), versions 2 to 10.

Behaviour:
- Offsets are written to `__consumer_offsets` and answered when they are committed there.
- A member commits under its generation; without one only an empty group takes offsets.
- Partitions that do not exist are answered UNKNOWN_TOPIC_OR_PARTITION (UNKNOWN_TOPIC_ID by id).

Versions:
- 2   retention time, until 4
- 3   throttle time
- 6   leader epoch                                  KIP-320
- 7   group instance id                             KIP-345
- 8   flexible
- 9   GROUP_ID_NOT_FOUND instead of ILLEGAL_GENERATION, member epochs    KIP-848
- 10  topic ids instead of names                    KIP-848
"""

from typing import TYPE_CHECKING

from broker.groups.offsets.offset_manager import OffsetCommit
from broker.requests.answer import Answer
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.OFFSET_COMMIT
VERSIONS = (2, 10)
TOPIC_IDS_FROM_VERSION = 10


def handle(
    services: "Services", context: "RequestContext", request: OffsetCommitRequest
) -> "OffsetCommitResponse | Answer[OffsetCommitResponse]":
    """Store offsets of a group."""
    image = services.controller.image
    by_id = context.api_version >= TOPIC_IDS_FROM_VERSION
    response = OffsetCommitResponse(topics=[])
    commits: list[OffsetCommit] = []
    for topic in request.topics:
        topic_id = topic.topic_id
        found = image.topics_by_id.get(topic_id) if by_id else image.topics.get(topic.name)
        partition_count = 0 if found is None else len(found.partitions)
        results = []
        for partition in topic.partitions:
            result = OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=0
            )
            results.append(result)
            if found is not None and 0 <= partition.partition_index < partition_count:
                commits.append(OffsetCommit(found.name, topic_id, partition, result))
            elif found is None and by_id:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_ID
            else:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        response.topics.append(
            OffsetCommitResponseTopic(topic_id=topic_id, name=topic.name, partitions=results)
        )
    if not commits:
        return response
    answer: Answer[OffsetCommitResponse] = Answer()

    def done(code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            for commit in commits:
                commit.response.error_code = code
        answer(response)

    services.groups.commit_offsets(request, context.api_version, commits, done)
    return answer.result()
