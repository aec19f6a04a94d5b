"""The outcome of an append of a coordinator's records, and its error code for clients.

    code of the append                   outcome
    NONE                                 committed
    REQUEST_TIMED_OUT,                   unknown: the records may be in the log, or come to be
    KAFKA_STORAGE_ERROR,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND
    any other, nothing was written       refused
    any other, the log had the records   unknown: the next leader may commit them, or truncate them

Source: Kafka, CoordinatorOperationExceptionHelper.java, GroupCoordinatorService.java.
"""

from collections.abc import Callable
from typing import Final

from protocol.error_codes import ErrorCode

KeyValue = tuple[bytes, bytes | None]
"""A record; without a value it is a tombstone."""

Done = Callable[[ErrorCode], None]
"""Called once with the error code for the client."""

OUTCOME_UNKNOWN: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)

TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
"""Returned before anything is written, by `max.message.bytes` and `segment.bytes` of the topic."""

_CODES_FOR_CLIENTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def code_for_clients(code: ErrorCode) -> ErrorCode:
    """Error code that a coordinator's client gets for a failed append (Kafka's translation)."""
    return _CODES_FOR_CLIENTS.get(code, code)
