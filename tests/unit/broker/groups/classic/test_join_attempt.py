"""One JoinGroup request, as the group sees it."""

import pytest

from broker.groups.classic.join_attempt import JoinAttempt
from protocol.error_codes import ErrorCode
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)


def attempt(version: int, answers: list[JoinGroupResponse]) -> JoinAttempt:
    request = JoinGroupRequest(
        session_timeout_ms=1_000,
        rebalance_timeout_ms=9_000,
        protocols=[
            JoinGroupRequestProtocol(name=n, metadata=m) for n, m in (("a", b"1"), ("a", b"2"))
        ],
    )
    return JoinAttempt(
        request, api_version=version, client_id="c", client_host="/h", reply=answers.append
    )


@pytest.mark.parametrize(("version", "timeout_ms"), [(0, 1_000), (1, 9_000)])
def test_version_0_knows_no_rebalance_timeout(version: int, timeout_ms: int) -> None:
    assert attempt(version, []).rebalance_timeout_ms == timeout_ms


def test_names_are_unique_and_a_reason_is_there() -> None:
    made = attempt(9, [])
    assert made.protocols == (("a", b"1"),)
    assert made.reason == "not provided"


def test_refusal_answers_with_the_error() -> None:
    answers: list[JoinGroupResponse] = []
    attempt(9, answers).refuse(ErrorCode.UNKNOWN_MEMBER_ID, "m")
    (answer,) = answers
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "m")
