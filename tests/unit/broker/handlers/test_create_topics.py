"""CreateTopics, in every version."""

import pytest

from broker.handlers import create_topics
from config.topic import TOPIC_KEYS
from protocol.error_codes import ErrorCode
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of


def topic_of(name: str, partitions: int = 1, factor: int = 1, **more: object) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        **more,  # type: ignore[arg-type]  # assignments and configs
    )


@pytest.mark.parametrize("version", versions_of(create_topics))
async def test_one_result_per_topic_in_order(version: int) -> None:
    """Names given twice come last, once, and are not created."""
    controller = await open_controller()
    request = CreateTopicsRequest(
        topics=[
            topic_of("twice"),
            topic_of("good", 3),
            topic_of("bad name"),
            topic_of("twice"),
            topic_of("assigned", -1, -1, assignments=[CreatableReplicaAssignment(broker_ids=[1])]),
        ]
    )
    response = await call(create_topics, services_of(controller), request, version)
    assert [(t.name, ErrorCode(t.error_code)) for t in response.topics] == [
        ("good", ErrorCode.NONE),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("assigned", ErrorCode.NONE),
        ("twice", ErrorCode.INVALID_REQUEST),
    ]
    assert response.topics[0].error_message is None
    assert response.topics[3].error_message == "Duplicate topic name."
    assert set(controller.image.topics) == {"good", "assigned"}
    if version >= 5:
        assert response.topics[0].num_partitions == 3
        assert response.topics[0].replication_factor == 1
        assert response.topics[1].num_partitions == -1
    if version >= 7:
        assert response.topics[0].topic_id == controller.image.topics["good"].topic_id


@pytest.mark.parametrize("version", [5, 6, 7])
async def test_settings_are_told(version: int) -> None:
    """All of them, by name, with where they come from."""
    controller = await open_controller()
    configs = [CreatableTopicConfig(name="retention.ms", value="1000")]
    request = CreateTopicsRequest(topics=[topic_of("t", configs=configs)])
    response = await call(create_topics, services_of(controller), request, version)
    told = {config.name: config for config in response.topics[0].configs}
    assert list(told) == sorted(n for n, row in TOPIC_KEYS.items() if not row.internal)
    assert (told["retention.ms"].value, told["retention.ms"].config_source) == ("1000", 1)
    assert (told["segment.bytes"].value, told["segment.bytes"].config_source) == (
        "1073741824",
        5,
    )


async def test_defaults_when_nothing_is_said() -> None:
    """-1 for both (KIP-464)."""
    controller = await open_controller(num_partitions=4)
    request = CreateTopicsRequest(topics=[topic_of("t", -1, -1)])
    response = await call(create_topics, services_of(controller), request, 4)
    assert response.topics[0].error_code == ErrorCode.NONE
    assert len(controller.image.topics["t"].partitions) == 4


async def test_validate_only() -> None:
    controller = await open_controller()
    request = CreateTopicsRequest(topics=[topic_of("t"), topic_of("")], validate_only=True)
    response = await call(create_topics, services_of(controller), request, 7)
    assert [t.error_code for t in response.topics] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert controller.image.topics == {}


async def test_nothing_asked_for() -> None:
    controller = await open_controller()
    response = await call(create_topics, services_of(controller), CreateTopicsRequest(), 7)
    assert response.topics == []
