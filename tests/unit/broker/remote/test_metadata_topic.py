"""`__remote_log_metadata` is there, with the settings it must have."""

import logging

import pytest

from broker.controller.images.topic_names import INTERNAL_TOPICS
from broker.controller.topics.topics import NewTopic
from broker.remote.metadata_topic import (
    REMOTE_LOG_METADATA,
    TOPIC_CONFIGS,
    ensure_metadata_topic,
)
from tests.fakes.broker.controller import open_controller
from tiered.errors import RemoteStorageError


async def test_it_is_created_with_its_settings() -> None:
    controller = await open_controller()
    topic = await ensure_metadata_topic(controller, partitions=7, replication_factor=3)
    assert len(topic.partitions) == 7
    assert all(partition.replicas == (1,) for partition in topic.partitions)
    assert dict(topic.overrides) == TOPIC_CONFIGS
    again = await ensure_metadata_topic(controller, partitions=7, replication_factor=3)
    assert again.topic_id == topic.topic_id


async def test_it_is_no_internal_topic_as_in_kafka() -> None:
    controller = await open_controller()
    topic = await ensure_metadata_topic(controller, partitions=1, replication_factor=1)
    assert not topic.internal
    assert REMOTE_LOG_METADATA not in INTERNAL_TOPICS


async def test_settings_that_lose_events_are_corrected(caplog: pytest.LogCaptureFixture) -> None:
    """A topic that Kafka made, or somebody by hand."""
    controller = await open_controller()
    await controller.create_topics(
        [NewTopic(REMOTE_LOG_METADATA, 5, 1, (), (("cleanup.policy", "compact"),))]
    )
    topic = await ensure_metadata_topic(controller, partitions=50, replication_factor=1)
    assert len(topic.partitions) == 5
    now = controller.image.topics[REMOTE_LOG_METADATA]
    assert dict(now.overrides) == TOPIC_CONFIGS
    messages = [record.getMessage() for record in caplog.records]
    assert any("has partitions=5, not 50" in message for message in messages)
    assert any("corrected" in message for message in messages)
    caplog.clear()
    await ensure_metadata_topic(controller, partitions=5, replication_factor=1)
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_a_controller_that_cannot_is_worth_another_try() -> None:
    controller = await open_controller()
    with pytest.raises(RemoteStorageError, match="cannot be created"):
        await ensure_metadata_topic(controller, partitions=0, replication_factor=1)
