"""A client's request in an envelope, and the controller's answer out of it."""

from struct import pack

import pytest

from broker.requests.forwarded import TIMEOUT_MS, WAY_MS, body_of, forwarded
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages import create_topics, update_features
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from tests.fakes.broker.controller import context_of


class Channel:
    """Answers each envelope alike."""

    is_here = False

    def __init__(self, answer: EnvelopeResponse | None) -> None:
        self.answer = answer
        self.sent: list[tuple[EnvelopeRequest, float]] = []

    async def forward(
        self, request: EnvelopeRequest, *, timeout_ms: float
    ) -> EnvelopeResponse | None:
        self.sent.append((request, timeout_ms))
        return self.answer


REQUEST = create_topics.CreateTopicsRequest(timeout_ms=1234)
BODY = create_topics.encode_response(create_topics.CreateTopicsResponse(), 7)


async def test_the_request_as_it_was_the_answer_without_its_header() -> None:
    channel = Channel(EnvelopeResponse(response_data=pack(">ib", 0, 0) + BODY))
    context = context_of(ApiKey.CREATE_TOPICS, 7)
    assert await forwarded(channel, create_topics, context, REQUEST) == BODY
    ((envelope, timeout_ms),) = channel.sent
    assert timeout_ms == 1234
    assert envelope.request_data.endswith(create_topics.encode_request(REQUEST, 7))
    assert envelope.request_data[:4] == pack(">hh", 19, 7)


async def test_a_request_in_a_hurry_has_a_second_for_the_way() -> None:
    """One that was cut off was refused by the topic that it had made."""
    channel = Channel(None)
    request = update_features.UpdateFeaturesRequest(timeout_ms=5)
    context = context_of(ApiKey.UPDATE_FEATURES, 2)
    assert await forwarded(channel, update_features, context, request) is None
    assert channel.sent[0][1] == WAY_MS


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
async def test_no_time_is_time_enough_for_the_way(timeout_ms: int) -> None:
    """The controller made the topic; the client was told that there was no controller."""
    channel = Channel(EnvelopeResponse(response_data=pack(">ib", 0, 0) + BODY))
    request = create_topics.CreateTopicsRequest(timeout_ms=timeout_ms)
    context = context_of(ApiKey.CREATE_TOPICS, 7)
    assert await forwarded(channel, create_topics, context, request) == BODY
    assert channel.sent[0][1] == TIMEOUT_MS


async def test_a_refused_envelope_is_the_requests_error() -> None:
    channel = Channel(EnvelopeResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)))
    with pytest.raises(ApiError) as refused:
        await forwarded(channel, create_topics, context_of(19, 7), REQUEST)
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_an_answer_that_cannot_be_read() -> None:
    with pytest.raises(ApiError):
        body_of(b"\x00", 19, 7)
