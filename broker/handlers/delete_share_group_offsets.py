"""DeleteShareGroupOffsets (API key 92), version 0.

Behaviour:
- Deletes the start offsets of topics in a share group without members.
- UNKNOWN_TOPIC_OR_PARTITION for a topic that does not exist, or in which it has none.
- Answered when the share coordinator has done it and its completion is logged.

Versions:
- 0   KIP-932
"""

from typing import TYPE_CHECKING
from uuid import UUID

from broker.requests.answer import Answer
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DELETE_SHARE_GROUP_OFFSETS
VERSIONS = (0, 0)

NOWHERE = "There is no offset information to delete."


def handle(
    services: "Services", context: "RequestContext", request: DeleteShareGroupOffsetsRequest
) -> "DeleteShareGroupOffsetsResponse | Answer[DeleteShareGroupOffsetsResponse]":
    """Delete start offsets."""
    if not services.groups.serves_share_groups:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    if not request.group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID)
    topics = services.controller.image.topics
    names = list(dict.fromkeys(topic.topic_name for topic in request.topics))
    ids = {name: topics[name].topic_id for name in names if name in topics}
    answer: Answer[DeleteShareGroupOffsetsResponse] = Answer()

    def done(code: ErrorCode, codes: dict[UUID, ErrorCode]) -> None:
        if code is not ErrorCode.NONE:
            answer(_refused(code))
            return
        response = DeleteShareGroupOffsetsResponse(responses=[])
        for name in names:
            topic_id = ids.get(name)
            if topic_id is None:
                unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                response.responses.append(_result(name, unknown, unknown.message))
                continue
            topic_code = codes[topic_id]
            message = (
                NOWHERE
                if topic_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else topic_code.message
            )
            result = _result(name, topic_code, message)
            if topic_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                result.topic_id = topic_id
            response.responses.append(result)
        answer(response)

    try:
        shares = services.groups.share_protocol(request.group_id)
        shares.administration.delete_offsets(request.group_id, ids.values(), done)
    except ApiError as error:
        return _refused(error.code, error.message)
    return answer.result()


def _result(
    name: str, code: ErrorCode, message: str | None
) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        error_code=code,
        error_message=None if code is ErrorCode.NONE else message,
    )


def _refused(code: ErrorCode, message: str | None = None) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(
        error_code=code, error_message=message or code.message, responses=[]
    )
