"""Creation of topics by the active controller, for a broker that needs them and is not it.

A client used a topic that is not there, or a coordinator's internal topic: the broker that noticed
asks the controller with CreateTopics, as a client would (KIP-590).
"""

from collections.abc import Callable, Sequence
from typing import Final

from broker.controller.channel import ControllerChannel
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.results import CreateTopicResult
from broker.controller.topics.topics import NewTopic
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.headers import decode_response_header, encode_request_header
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    decode_response,
    encode_request,
)
from protocol.messages.envelope import EnvelopeRequest

VERSION: Final = 7
TIMEOUT_MS: Final = 10_000


class ForwardedCreation:
    """See the module."""

    def __init__(
        self, channel: ControllerChannel, image: Callable[[], ClusterImage], client_id: str
    ) -> None:
        self._channel = channel
        self._image = image
        self._client_id = client_id

    async def create(self, topics: Sequence[NewTopic]) -> list[CreateTopicResult] | None:
        """Have topics created; one result per topic, in order.

        Returns:
            None: to be done here, or there was no controller in time.
        """
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.num_partitions,
                    replication_factor=topic.replication_factor,
                    configs=[
                        CreatableTopicConfig(name=name, value=value)
                        for name, value in topic.configs
                    ],
                )
                for topic in topics
            ],
            timeout_ms=TIMEOUT_MS,
        )
        head = encode_request_header(ApiKey.CREATE_TOPICS, VERSION, 0, self._client_id)
        envelope = EnvelopeRequest(request_data=head + encode_request(request, VERSION))
        answer = await self._channel.forward(envelope, timeout_ms=TIMEOUT_MS)
        if answer is None:
            return None
        if answer.error_code or answer.response_data is None:
            code = ErrorCode(answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
            return [CreateTopicResult(topic.name, code, code.message) for topic in topics]
        return self._results(topics, _decoded(answer.response_data))

    def _results(
        self, topics: Sequence[NewTopic], response: CreateTopicsResponse | None
    ) -> list[CreateTopicResult]:
        answered = {} if response is None else {result.name: result for result in response.topics}
        image = self._image()
        results = []
        for topic in topics:
            result = answered.get(topic.name)
            if result is None:
                results.append(CreateTopicResult(topic.name, ErrorCode.UNKNOWN_SERVER_ERROR))
                continue
            results.append(
                CreateTopicResult(
                    topic.name,
                    ErrorCode(result.error_code),
                    result.error_message,
                    image.topics.get(topic.name),
                )
            )
        return results


def _decoded(data: bytes) -> CreateTopicsResponse | None:
    view = memoryview(data)
    try:
        _, position = decode_response_header(view, ApiKey.CREATE_TOPICS, VERSION)
        return decode_response(view[position:], VERSION)
    except DecodeError:
        return None
