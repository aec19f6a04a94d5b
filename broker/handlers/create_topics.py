"""CreateTopics (API key 19), versions 2 to 7.

Behaviour:
- One result per topic, in the order of the request; those named twice come last, once each, with
  INVALID_REQUEST. A topic is created whole or not at all, independently of the others.
- The answer comes when the topics can be used: their logs exist and Metadata lists them. That takes
  milliseconds, so `timeout_ms` is not used, unless it is 0 or less: then nothing is done, and every
  topic is REQUEST_TIMED_OUT, as Kafka's controller answers it.
- More than 10,000 partitions in one request: POLICY_VIOLATION for every topic, as in Kafka.
- `validate_only` answers as if the topics had been created, with an id that will not be theirs.

Versions:
- 4   partition count and replication factor may be -1 without assignments   KIP-464
- 5   flexible; answers with counts and settings                            KIP-525
- 7   topic ids                                                             KIP-516
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.controller.configs.config_descriptions import ConfigDescriptions, ConfigEntry
from broker.controller.images.results import CreateTopicResult
from broker.controller.images.topic_names import CLUSTER_METADATA
from broker.controller.topics.topics import NewTopic
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.CREATE_TOPICS
VERSIONS = (2, 7)
FORWARDED = True


async def handle(
    services: "Services", context: "RequestContext", request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """Create each topic by itself."""
    controller = services.controller
    times: dict[str, int] = {}
    for topic in request.topics:
        times[topic.name] = times.get(topic.name, 0) + 1
    wanted = [_new_topic(topic) for topic in request.topics if times[topic.name] == 1]
    # A broker of Kafka's refuses CLUSTER_METADATA before it asks its controller.
    if request.timeout_ms <= 0 and any(new.name != CLUSTER_METADATA for new in wanted):
        return _timed_out(request)
    results = await controller.create_topics(wanted, validate_only=request.validate_only)
    descriptions = ConfigDescriptions(services.settings, controller.image)
    with_configs = context.api_version >= 5
    plain = _configs(descriptions.topic_with({})) if with_configs else []
    answers = [_answer(result, descriptions if with_configs else None, plain) for result in results]
    answers += [
        CreatableTopicResult(
            name=name,
            error_code=int(ErrorCode.INVALID_REQUEST),
            error_message="Duplicate topic name.",
        )
        for name, n in times.items()
        if n > 1
    ]
    return CreateTopicsResponse(topics=answers)


def _timed_out(request: CreateTopicsRequest) -> CreateTopicsResponse:
    code = ErrorCode.REQUEST_TIMED_OUT
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=int(code), error_message=code.message)
            for topic in request.topics
        ]
    )


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assigned.partition_index, assigned.broker_ids) for assigned in topic.assignments],
        [(config.name, config.value) for config in topic.configs],
    )


def _answer(
    result: CreateTopicResult,
    descriptions: ConfigDescriptions | None,
    plain: list[CreatableTopicConfigs],
) -> CreatableTopicResult:
    """One topic's result; `plain` is shared by all topics without settings of their own."""
    answer = CreatableTopicResult(
        name=result.name, error_code=int(result.error), error_message=result.message
    )
    topic = result.topic
    if topic is None:
        return answer
    answer.topic_id = topic.topic_id
    if descriptions is not None:
        answer.num_partitions = len(topic.partitions)
        answer.replication_factor = topic.replication_factor
        answer.configs = _configs(descriptions.topic(topic)) if topic.overrides else plain
    return answer


def _configs(entries: Sequence[ConfigEntry]) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=int(entry.source),
            is_sensitive=entry.is_sensitive,
        )
        for entry in entries
    ]
