"""AlterPartitionReassignments (API key 45), versions 0 to 1.

Behaviour:
- Each partition by itself: other replicas, or, with null, those of before the reassignment that is
  under way. The answer comes when it has begun; the replicas are moved after that.
- What is asked for a second time changes nothing.
- Errors of a partition: `broker.controller.active.reassignments`. NOT_CONTROLLER for all of the
  request: a part of it may have begun, and it is to be sent again.
- With a `timeout_ms` of 0 or less nothing is done, and all is REQUEST_TIMED_OUT, as Kafka's
  controller answers it.
- On a single node there is one assignment, which every partition has: kafka-reassign-partitions
  sends it along with a move to another log directory.

Versions:
- 0  KIP-455, flexible
- 1  whether the number of replicas may become another   KIP-860
"""

from itertools import groupby
from typing import TYPE_CHECKING

from broker.controller.active.reassignments import ReassignmentRequest, ReassignmentResult
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.ALTER_PARTITION_REASSIGNMENTS
VERSIONS = (0, 1)
FORWARDED = True


async def handle(
    services: "Services", _context: "RequestContext", request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Begin, change or cancel the reassignments that are named."""
    wanted = [
        ReassignmentRequest(
            topic.name, one.partition_index, None if one.replicas is None else tuple(one.replicas)
        )
        for topic in request.topics
        for one in topic.partitions
    ]
    may_resize = request.allow_replication_factor_change
    if request.timeout_ms <= 0 and request.topics:
        code = ErrorCode.REQUEST_TIMED_OUT
        return AlterPartitionReassignmentsResponse(
            error_code=int(code),
            error_message=code.message,
            responses=[_late(topic) for topic in request.topics],
        )
    results = await services.active_controller.alter_reassignments(wanted, may_resize=may_resize)
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_resize,
        error_message=None,
        responses=[
            ReassignableTopicResponse(name=name, partitions=[_answer(one) for one in group])
            for name, group in groupby(results, lambda one: one.request.topic)
        ],
    )
    if any(one.error is ErrorCode.NOT_CONTROLLER for one in results):
        response.error_code = int(ErrorCode.NOT_CONTROLLER)
        begun = sum(one.error is ErrorCode.NONE for one in results)
        response.error_message = (
            f"The controller has moved: {begun} of {len(results)} partitions are begun; send the "
            "request again, which changes nothing for these."
        )
    return response


def _late(topic: ReassignableTopic) -> ReassignableTopicResponse:
    code = ErrorCode.REQUEST_TIMED_OUT
    return ReassignableTopicResponse(
        name=topic.name,
        partitions=[
            ReassignablePartitionResponse(
                partition_index=one.partition_index,
                error_code=int(code),
                error_message=code.message,
            )
            for one in topic.partitions
        ],
    )


def _answer(result: ReassignmentResult) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=result.request.partition,
        error_code=int(result.error),
        error_message=result.message,
    )
