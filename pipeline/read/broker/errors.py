"""Errors of brokers, and what becomes of them.

    ReadError
    └── BrokerError                  says which broker or partition, and why
        ├── BrokerUnreachableError   no broker of the bootstrap list answers, or the leader has gone
        ├── BrokerDeniedError        TOPIC_AUTHORIZATION_FAILED and its like
        ├── TopicGoneError           deleted, or recreated under another id
        └── OffsetsGoneError         OFFSET_OUT_OF_RANGE

What Kafka calls retriable is tried again with new metadata until `retry_timeout_ms` has passed, and
is an error only then.
"""

from typing import Final

from pipeline.read.read_errors import ReadError
from protocol.error_codes import ErrorCode


class BrokerError(ReadError):
    """Any expected failure of asking a broker."""


class BrokerUnreachableError(BrokerError):
    """No connection, or none that lasts."""


class BrokerDeniedError(BrokerError):
    """The broker does not let us."""


class TopicGoneError(BrokerError):
    """There is no such topic, or it was recreated."""


class OffsetsGoneError(BrokerError):
    """The leader's log has no such offset."""


GONE: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)
"""Of a topic that does not exist, or of a broker that does not know it yet."""

DENIED: Final = frozenset(
    (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
    )
)

PASSING: Final = frozenset(
    (
        *GONE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    )
)
"""Worth another try, beside those that Kafka calls retriable."""


def code_of(number: int) -> ErrorCode:
    """The code with this number; UNKNOWN_SERVER_ERROR for one of a newer Kafka."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def is_passing(code: ErrorCode) -> bool:
    """Whether the same request may succeed later."""
    return code in PASSING or code.retriable


def error_of(code: ErrorCode, what: str) -> BrokerError:
    """The error for a code that did not pass.

    Args:
        code: Which.
        what: Of what: begins the sentence.
    """
    text = f"{what}: {code.name} ({code.message})"
    if code in DENIED:
        return BrokerDeniedError(text)
    if code in GONE:
        return TopicGoneError(text)
    return BrokerError(text)
