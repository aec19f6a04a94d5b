"""Heartbeats of consumer groups, and their responses."""

from collections.abc import Callable
from typing import NamedTuple

from broker.groups.modern.assignment import Assignment
from broker.groups.modern.member import Client
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import Assignment as AssignmentMessage
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

HeartbeatReply = Callable[[ConsumerGroupHeartbeatResponse], None]


class Heartbeat(NamedTuple):
    """A request, its client, and the callback of its response."""

    request: ConsumerGroupHeartbeatRequest
    client: Client
    reply: HeartbeatReply


def assignment_message(assigned: Assignment) -> AssignmentMessage:
    """A member's assignment, as a response has it."""
    return AssignmentMessage(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(
                topic_id=topic_id, partitions=list(partitions)
            )
            for topic_id, partitions in assigned.items()
        ]
    )


def refusal(error: ApiError) -> ConsumerGroupHeartbeatResponse:
    """The response with an error."""
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def no_such_group(group_id: str, *, exists: bool) -> ApiError:
    """GROUP_ID_NOT_FOUND; `exists`: there is a group of another kind."""
    message = (
        f"Group {group_id} is not a consumer group."
        if exists
        else f"Consumer group {group_id} not found."
    )
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def answer_when_written(
    reply: HeartbeatReply, response: ConsumerGroupHeartbeatResponse, code: ErrorCode
) -> None:
    """Send a response when its changes are committed, or the error if they are not."""
    reply(response if code is ErrorCode.NONE else refusal(ApiError(code)))
