"""DeleteTopics (API key 20), versions 1 to 6.

Behaviour:
- One result per topic: refused ones first, then the deleted ones (Kafka shuffles them, so that
  the order does not reveal which names exist).
- Unknown names are UNKNOWN_TOPIC_OR_PARTITION, unknown ids UNKNOWN_TOPIC_ID; a topic named twice,
  by name and id together, or not at all, is INVALID_REQUEST.
- With `delete.topic.enable=false` every topic is TOPIC_DELETION_DISABLED (INVALID_REQUEST before
  version 3).
- Internal topics may be deleted, as in Kafka; `__remote_log_metadata` only while no topic has
  anything in remote storage (POLICY_VIOLATION).
- The answer comes when the topics can no longer be used; their files are deleted later.
- With a `timeout_ms` of 0 or less nothing is done, and every topic is REQUEST_TIMED_OUT, as Kafka's
  controller answers it.

Versions:
- 4  flexible
- 5  error messages                KIP-599
- 6  topics by id                  KIP-516
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.primitives import NIL_UUID

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DELETE_TOPICS
VERSIONS = (1, 6)
FORWARDED = True


async def handle(
    services: "Services", context: "RequestContext", request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """Delete each topic by itself."""
    asked = [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]
    if not services.settings.delete_topic_enable:
        return _disabled(asked, context.api_version)
    controller = services.controller
    answers: list[DeletableTopicResult] = []
    names, ids, refused_ids = _split(asked, answers)
    if request.timeout_ms <= 0 and (names or ids):
        code = ErrorCode.REQUEST_TIMED_OUT
        return DeleteTopicsResponse(
            responses=[_result(one.name, one.topic_id, code, code.message) for one in asked]
        )
    chosen = _resolve(controller.image, names, ids, refused_ids, answers)
    results = await controller.delete_topics(chosen)
    for topic_id, result in results.items():
        message = result.message
        answers.append(_result(chosen[topic_id], topic_id, result.error, message))
    return DeleteTopicsResponse(responses=answers)


def _disabled(asked: Iterable[DeleteTopicState], version: int) -> DeleteTopicsResponse:
    error, message = ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled."
    if version < 3:
        error, message = (
            ErrorCode.INVALID_REQUEST,
            "This version does not support topic deletion.",
        )
    return DeleteTopicsResponse(
        responses=[_result(topic.name, topic.topic_id, error, message) for topic in asked]
    )


def _split(
    asked: Iterable[DeleteTopicState], answers: list[DeletableTopicResult]
) -> tuple[list[str], list[UUID], list[UUID]]:
    """Names and ids that are listed once, which are not answered yet, and ids listed twice."""
    names: dict[str, int] = {}
    ids: dict[UUID, int] = {}
    for topic in asked:
        if topic.name is None and topic.topic_id == NIL_UUID:
            answers.append(_refusal(None, NIL_UUID, "Neither topic name nor id were specified."))
        elif topic.name is None:
            ids[topic.topic_id] = ids.get(topic.topic_id, 0) + 1
        elif topic.topic_id != NIL_UUID:
            answers.append(
                _refusal(
                    topic.name,
                    topic.topic_id,
                    "You may not specify both topic name and topic id.",
                )
            )
        else:
            names[topic.name] = names.get(topic.name, 0) + 1
    answers += [
        _refusal(name, NIL_UUID, "Duplicate topic name.") for name, n in names.items() if n > 1
    ]
    answers += [
        _refusal(None, topic_id, "Duplicate topic id.") for topic_id, n in ids.items() if n > 1
    ]
    return (
        [name for name, n in names.items() if n == 1],
        [topic_id for topic_id, n in ids.items() if n == 1],
        [topic_id for topic_id, n in ids.items() if n > 1],
    )


def _resolve(
    image: "ClusterImage",
    names: Iterable[str],
    ids: Iterable[UUID],
    refused_ids: Collection[UUID],
    answers: list[DeletableTopicResult],
) -> dict[UUID, str]:
    """Id and name of topics to delete; those that do not exist are answered.

    A name of one of `refused_ids` is refused, too: the topic was asked for in two ways.
    """
    chosen: dict[UUID, str] = {}
    for topic_id in ids:
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
            answers.append(_result(None, topic_id, error, error.message))
        else:
            chosen[topic_id] = topic.name
    for name in names:
        topic = image.topics.get(name)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answers.append(_result(name, NIL_UUID, error, error.message))
        elif topic.topic_id in chosen or topic.topic_id in refused_ids:
            chosen.pop(topic.topic_id, None)
            message = "The provided topic name maps to an ID that was already supplied."
            answers.append(_refusal(name, topic.topic_id, message))
        else:
            chosen[topic.topic_id] = name
    return chosen


def _refusal(name: str | None, topic_id: UUID, message: str) -> DeletableTopicResult:
    return _result(name, topic_id, ErrorCode.INVALID_REQUEST, message)


def _result(
    name: str | None, topic_id: UUID, error: ErrorCode, message: str | None
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=int(error), error_message=message
    )
