"""AlterShareGroupOffsets (API key 91), version 0.

Behaviour:
- Resets a share group without members to the given start offsets; one that does not exist is
  created. Topics and partitions that do not exist are UNKNOWN_TOPIC_OR_PARTITION.
- Answered when the share coordinator has done it and its completion is logged.

Versions:
- 0   KIP-932
"""

from typing import TYPE_CHECKING
from uuid import UUID

from broker.groups.coordinator import can_be_recorded
from broker.groups.share.initializer import Codes
from broker.requests.answer import Answer
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.ALTER_SHARE_GROUP_OFFSETS
VERSIONS = (0, 0)


def handle(
    services: "Services", context: "RequestContext", request: AlterShareGroupOffsetsRequest
) -> "AlterShareGroupOffsetsResponse | Answer[AlterShareGroupOffsetsResponse]":
    """Reset start offsets."""
    if not services.groups.serves_share_groups:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    if not request.group_id or not can_be_recorded(request.group_id):
        return _refused(ErrorCode.INVALID_GROUP_ID)
    topics = services.controller.image.topics
    offsets: dict[UUID, dict[int, int]] = {}
    for topic in request.topics:
        image = topics.get(topic.topic_name)
        if image is None:
            continue
        for partition in topic.partitions:
            if 0 <= partition.partition_index < len(image.partitions):
                start_offsets = offsets.setdefault(image.topic_id, {})
                start_offsets[partition.partition_index] = partition.start_offset
    answer: Answer[AlterShareGroupOffsetsResponse] = Answer()

    def done(code: ErrorCode, codes: Codes) -> None:
        if code is not ErrorCode.NONE:
            answer(_refused(code))
            return
        answered: dict[str, AlterShareGroupOffsetsResponseTopic] = {}
        for topic in request.topics:
            image = topics.get(topic.topic_name)
            results = {} if image is None else codes.get(image.topic_id, {})
            one = answered.setdefault(
                topic.topic_name,
                AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, partitions=[]),
            )
            if image is not None:
                one.topic_id = image.topic_id
            one.partitions += [
                _result(p.partition_index, results.get(p.partition_index)) for p in topic.partitions
            ]
        answer(AlterShareGroupOffsetsResponse(responses=list(answered.values())))

    try:
        shares = services.groups.share_protocol(request.group_id)
        shares.administration.alter_offsets(request.group_id, offsets, done)
    except ApiError as error:
        return _refused(error.code, error.message)
    return answer.result()


def _result(index: int, code: ErrorCode | None) -> AlterShareGroupOffsetsResponsePartition:
    if code is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=index,
        error_code=code,
        error_message=None if code is ErrorCode.NONE else code.message,
    )


def _refused(code: ErrorCode, message: str | None = None) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(
        error_code=code, error_message=message or code.message, responses=[]
    )
