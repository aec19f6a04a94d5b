"""CreatePartitions (API key 37), versions 0 to 3.

Behaviour:
- One result per topic, in the order of the request; those named twice come first, once each, with
  INVALID_REQUEST.
- The count can only grow. Records stay where they are; keys may map to other partitions from now
  on.
- `__remote_log_metadata` keeps its partitions while a topic has anything in remote storage
  (POLICY_VIOLATION): a topic's metadata partition follows from their number.
- The answer comes when the new partitions can be used; `timeout_ms` is not used, unless it is 0 or
  less: then nothing is done, and every topic is REQUEST_TIMED_OUT, as Kafka's controller answers.

Versions:
- 2  flexible
- 3  may be throttled               KIP-599
"""

from typing import TYPE_CHECKING

from broker.controller.topics.topics import NewPartitions
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.CREATE_PARTITIONS
VERSIONS = (0, 3)
FORWARDED = True


async def handle(
    services: "Services", context: "RequestContext", request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Extend each topic by itself."""
    times: dict[str, int] = {}
    for topic in request.topics:
        times[topic.name] = times.get(topic.name, 0) + 1
    answers = [
        CreatePartitionsTopicResult(
            name=name,
            error_code=int(ErrorCode.INVALID_REQUEST),
            error_message="Duplicate topic name.",
        )
        for name, n in times.items()
        if n > 1
    ]
    wanted = [
        NewPartitions(
            topic.name,
            topic.count,
            None
            if topic.assignments is None
            else [assignment.broker_ids for assignment in topic.assignments],
        )
        for topic in request.topics
        if times[topic.name] == 1
    ]
    if request.timeout_ms <= 0 and wanted:
        return _timed_out(request)
    results = await services.controller.create_partitions(
        wanted, validate_only=request.validate_only
    )
    answers += [
        CreatePartitionsTopicResult(
            name=new.name, error_code=int(result.error), error_message=result.message
        )
        for new, result in zip(wanted, results, strict=True)
    ]
    return CreatePartitionsResponse(results=answers)


def _timed_out(request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    code = ErrorCode.REQUEST_TIMED_OUT
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=topic.name, error_code=int(code), error_message=code.message
            )
            for topic in request.topics
        ]
    )
