import pytest

from pipeline.read.broker.errors import (
    BrokerDeniedError,
    BrokerError,
    TopicGoneError,
    code_of,
    error_of,
    is_passing,
)
from protocol.error_codes import ErrorCode


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
def test_what_may_pass_is_tried_again(code: ErrorCode) -> None:
    assert is_passing(code)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_what_does_not_pass_is_not(code: ErrorCode) -> None:
    assert not is_passing(code)


def test_errors_are_of_their_kind_and_say_of_what() -> None:
    denied = error_of(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "topic t")
    assert isinstance(denied, BrokerDeniedError)
    assert str(denied).startswith("topic t: TOPIC_AUTHORIZATION_FAILED (")
    assert isinstance(error_of(ErrorCode.UNKNOWN_TOPIC_ID, "t"), TopicGoneError)
    assert type(error_of(ErrorCode.INVALID_REQUEST, "t")) is BrokerError


def test_a_code_of_a_newer_kafka_is_an_unknown_error() -> None:
    assert code_of(30_000) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert code_of(0) is ErrorCode.NONE
