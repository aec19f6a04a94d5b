"""Each broker opens what is assigned to it, and leads what the image says."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.controller.controller import Controller
from broker.controller.topics.topics import NewTopic
from broker.runtime.startup_errors import StartupError
from protocol.error_codes import ErrorCode
from storage.types.topic_partition import TopicPartition
from tests.system.cluster.test_membership import Cluster
from tests.system.conftest import until


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        await cluster.close()


async def brokers_of(cluster: Cluster) -> list[Broker]:
    """Three, ready."""
    brokers = list(await asyncio.gather(*(cluster.start(node_id) for node_id in (1, 2, 3))))
    await until(lambda: all(broker.ready for broker in brokers))
    return brokers


async def active(cluster: Cluster) -> Controller:
    """Of the broker that is the controller now."""

    def found() -> list[Controller]:
        return [
            broker.controller
            for broker in cluster.running
            if broker.controller is not None and broker.controller.changes.is_controller
        ]

    await until(lambda: len(found()) == 1)
    return found()[0]


async def create(cluster: Cluster, name: str, *replicas: tuple[int, ...]) -> None:
    """Create a topic with these replicas, a partition each."""
    topic = NewTopic(name, assignments=tuple(enumerate(replicas)))
    (result,) = await (await active(cluster)).create_topics([topic])
    assert result.error is ErrorCode.NONE, result.message


def opened(broker: Broker) -> set[int]:
    """Indexes of the partitions that are open."""
    return {p.topic_partition.partition for p in broker.replicas.partitions()}


def led(broker: Broker, name: str, count: int) -> set[int]:
    """Indexes of the partitions that are led."""
    return {index for index in range(count) if broker.replicas.leader_of(name, index) is not None}


async def test_a_topic_is_where_it_is_assigned_and_led_where_the_image_says(
    cluster: Cluster,
) -> None:
    """No broker answers for what another leads, and none has a log that it does not need."""
    brokers = await brokers_of(cluster)
    await create(cluster, "t", (1, 2), (2, 3), (3, 1), (2, 1))
    await until(lambda: [opened(broker) for broker in brokers] == [{0, 2, 3}, {0, 1, 3}, {1, 2}])
    await until(lambda: [led(broker, "t", 4) for broker in brokers] == [{0}, {1, 3}, {2}])
    for broker, index in zip(brokers, (1, 0, 0), strict=True):
        assert broker.replicas.missing_error("t", index) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert broker.replicas.missing_error("t", 9) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_follower_that_starts_again_has_its_replicas_and_no_others(
    cluster: Cluster,
) -> None:
    """It opens what it finds and what was made while it was away, and begins no leader epoch."""
    brokers = await brokers_of(cluster)
    await create(cluster, "t", (1, 2), (1, 3))
    await until(lambda: opened(brokers[1]) == {0})
    await cluster.stop(brokers[1])
    await create(cluster, "late", (1, 2), (1, 3))
    again = await cluster.start(2)
    await until(lambda: again.ready)
    wanted = {TopicPartition("t", 0), TopicPartition("late", 0)}
    await until(lambda: {one.topic_partition for one in again.replicas.partitions()} == wanted)
    assert again.controller is not None
    assert again.controller.image.topics["late"].partitions[0].leader_epoch == 0


async def test_a_deleted_topic_leaves_every_broker(cluster: Cluster) -> None:
    """Its name is free at once for another topic, which gets none of its logs."""
    brokers = await brokers_of(cluster)
    controller = brokers[0].controller
    assert controller is not None
    await create(cluster, "t", (1, 2, 3))
    await until(lambda: all(opened(broker) == {0} for broker in brokers))
    before = controller.image.topics["t"].topic_id
    await (await active(cluster)).delete_topics([before])
    await create(cluster, "t", (3, 2, 1))
    await until(
        lambda: before not in controller.image.topics_by_id and "t" in controller.image.topics
    )
    now = controller.image.topics["t"].topic_id

    def ids() -> set[object]:
        found = (broker.replicas.replica_of("t", 0) for broker in brokers)
        return {None if one is None else one.log.topic_id for one in found}

    await until(lambda: ids() == {now})
    await until(lambda: [led(broker, "t", 1) for broker in brokers] == [set(), set(), {0}])


async def test_remote_storage_in_a_brokers_own_directory_is_refused_at_the_start(
    cluster: Cluster,
) -> None:
    """The others could not read what it has copied."""
    before = cluster.store.revision
    with pytest.raises(StartupError, match=r"rsm\.config\.storage\.root is not set"):
        await cluster.start(1, remote_log_storage_system_enable=True)
    assert cluster.store.revision == before
