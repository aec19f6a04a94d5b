"""One controller of three brokers: any broker takes requests for it, another takes its place."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.controller.images.partition_image import PartitionImage
from config.listeners import Listener
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.elect_leaders import ElectLeadersRequest
from protocol.messages.envelope import EnvelopeRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.fakes.network.client import Client
from tests.harness.brokers import ClusterHarness


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(tmp_path, offsets_topic_replication_factor=3) as cluster:
        yield cluster


def controller_of(cluster: ClusterHarness) -> int:
    """The one broker that is active; -1 while there is none, or while images differ."""
    active = [b for b in cluster.running if b.side is not None and b.side.control.active.is_active]
    named = {b.controller.image.controller_id for b in cluster.running if b.controller is not None}
    if len(active) == 1 and named == {active[0].settings.node_id}:
        return active[0].settings.node_id
    return -1


def partition_of(cluster: ClusterHarness, topic: str, index: int) -> PartitionImage:
    images = [b.controller.image for b in cluster.running if b.controller is not None]
    found = max(images, key=lambda image: image.revision).partition(topic, index)
    assert found is not None
    return found


async def expand(cluster: ClusterHarness, topic: str, index: int) -> None:
    """Have the leader ask for all replicas in the ISR, as it does when they have caught up."""
    while len((partition := partition_of(cluster, topic, index)).isr) < 3:
        leader = cluster.broker(partition.leader)
        assert leader.controller is not None
        assert leader.side is not None
        image = leader.controller.image
        request = AlterPartitionRequest(
            broker_id=partition.leader,
            broker_epoch=image.brokers[partition.leader].epoch,
            topics=[
                AlterPartitionRequestTopicData(
                    topic_id=image.topics[topic].topic_id,
                    partitions=[
                        AlterPartitionRequestPartitionData(
                            partition_index=index,
                            leader_epoch=partition.leader_epoch,
                            partition_epoch=partition.partition_epoch,
                            new_isr_with_epochs=[
                                BrokerState(broker_id=node, broker_epoch=image.brokers[node].epoch)
                                for node in partition.replicas
                            ],
                        )
                    ],
                )
            ],
        )
        answer = await leader.side.control.channel.alter_partition(request)
        assert answer.error_code == ErrorCode.NONE
        (result,) = answer.topics[0].partitions
        assert result.error_code in (ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION)


async def create(client: Client, name: str, replicas: int = 3) -> int:
    topic = CreatableTopic(name=name, num_partitions=3, replication_factor=replicas)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=20_000)
    (result,) = (await client.call(request)).topics
    return int(result.error_code)


async def test_every_broker_names_the_controller(cluster: ClusterHarness) -> None:
    """In Metadata and in DescribeCluster, with all brokers."""
    await cluster.until(lambda: controller_of(cluster) > 0)
    for node_id in cluster.nodes:
        client = await cluster.client(node_id)
        metadata = await client.metadata()
        described = await client.call(DescribeClusterRequest(endpoint_type=1))
        assert metadata.controller_id == described.controller_id == controller_of(cluster)
        assert {b.node_id for b in metadata.brokers} == {1, 2, 3}
        assert {b.broker_id for b in described.brokers} == {1, 2, 3}


async def test_any_broker_creates_topics(cluster: ClusterHarness) -> None:
    """Forwarded, and answered when the broker that was asked has the topic in its image."""
    for node_id in cluster.nodes:
        client = await cluster.client(node_id)
        assert await create(client, f"by-{node_id}") == ErrorCode.NONE
        (topic,) = (await client.metadata(f"by-{node_id}")).topics
        assert topic.error_code == ErrorCode.NONE
        assert await create(client, f"by-{node_id}") == ErrorCode.TOPIC_ALREADY_EXISTS
    partitions = cluster.broker(1).controller.image.topics["by-1"].partitions  # type: ignore[union-attr]  # it runs
    assert {partition.leader for partition in partitions} == {1, 2, 3}


async def test_another_broker_becomes_the_controller(cluster: ClusterHarness) -> None:
    """The old one is fenced, its partitions have other leaders, and topics can be created."""
    await cluster.until(lambda: controller_of(cluster) > 0)
    first = controller_of(cluster)
    other = next(node_id for node_id in cluster.nodes if node_id != first)
    client = await cluster.client(other)
    assert await create(client, "before") == ErrorCode.NONE
    await cluster.kill(first)
    assert await create(client, "after", replicas=2) == ErrorCode.NONE
    # The broker that was asked has the topic; another one may still have the image of before.
    await cluster.until(lambda: controller_of(cluster) not in (-1, first))
    await cluster.until(lambda: cluster.is_out(first))
    await cluster.until(
        lambda: all(cluster.leader_of("before", index) not in (-1, first) for index in range(3))
    )
    await cluster.restart(first)
    await cluster.until(lambda: cluster.let_in() == {1, 2, 3})


async def test_topics_are_made_for_clients_of_any_broker(cluster: ClusterHarness) -> None:
    """Those that a client uses, and the coordinators': with all their replicas."""
    for node_id in cluster.nodes:
        client = await cluster.client(node_id)
        await client.metadata(f"used-{node_id}", auto_create=True)
        await cluster.until(
            lambda node_id=node_id: cluster.leader_of(f"used-{node_id}") > 0  # type: ignore[misc]  # a bound variable
        )
        found = await client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        assert found.coordinators[0].error_code == ErrorCode.NONE
    offsets = cluster.broker(1).controller.image.topics["__consumer_offsets"]  # type: ignore[union-attr]  # it runs
    assert [len(partition.replicas) for partition in offsets.partitions] == [3, 3]


async def test_coordinators_wait_for_enough_brokers(tmp_path: Path) -> None:
    """The first client must not decide for ever how many replicas committed offsets have."""
    async with ClusterHarness(tmp_path, brokers=2, offsets_topic_replication_factor=3) as cluster:
        for node_id in cluster.nodes:
            client = await cluster.client(node_id)
            found = await client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            assert found.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert cluster.leader_of("__consumer_offsets") == -1


async def test_a_broker_that_stops_hands_over_first(cluster: ClusterHarness) -> None:
    """Its partitions have other leaders before it is gone, and get them back on request."""
    client = await cluster.client(1)
    assert await create(client, "t") == ErrorCode.NONE
    led = [index for index in range(3) if cluster.leader_of("t", index) == 3]
    epochs = {index: partition_of(cluster, "t", index).leader_epoch for index in range(3)}
    await cluster.stop(3)
    await cluster.until(lambda: cluster.is_out(3))
    for index in range(3):
        partition = partition_of(cluster, "t", index)
        assert partition.leader in (1, 2)
        assert 3 not in partition.isr
        assert partition.leader_epoch == epochs[index] + (index in led)
    await cluster.restart(3)
    await cluster.until(lambda: cluster.let_in() == {1, 2, 3})
    for index in range(3):
        await expand(cluster, "t", index)
    request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=10_000)
    answer = await (await cluster.client(2)).call(request)
    errors = {
        (one.topic, partition.partition_id): partition.error_code
        for one in answer.replica_election_results
        for partition in one.partition_result
    }
    assert errors == {("t", index): 0 for index in led}
    await cluster.until(lambda: all(cluster.leader_of("t", index) == 3 for index in led))


async def test_a_broker_that_is_gone_is_forgotten_on_request(cluster: ClusterHarness) -> None:
    """Whichever broker is asked; one that takes part is kept."""
    client = await cluster.client(2)
    answer = await client.call(UnregisterBrokerRequest(broker_id=3), 0)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    await cluster.stop(3)
    await cluster.until(
        lambda: all(
            b.controller.image.brokers[3].is_fenced for b in cluster.running if b.controller
        )
    )
    assert (await client.call(UnregisterBrokerRequest(broker_id=3), 0)).error_code == 0
    await cluster.restart(3)
    await cluster.until(lambda: cluster.let_in() == {1, 2, 3})


async def test_brokers_requests_are_not_for_clients(tmp_path: Path) -> None:
    """Where brokers have a listener of their own; and of what is inside, only administration."""
    listeners = (Listener("BROKERS", "127.0.0.1", 0), Listener("CLIENTS", "127.0.0.1", 0))
    async with ClusterHarness(
        tmp_path,
        brokers=1,
        listeners=listeners,
        listener_security_protocol_map={"BROKERS": "PLAINTEXT", "CLIENTS": "PLAINTEXT"},
        inter_broker_listener_name="BROKERS",
    ) as cluster:
        ports = {name: port for name, _, port in cluster.broker(1).addresses}
        async with await Client.connect("127.0.0.1", ports["CLIENTS"]) as client:
            for request, version in ((AlterPartitionRequest(), 3), (EnvelopeRequest(), 0)):
                answer = await client.call(request, version)
                assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        async with await Client.connect("127.0.0.1", ports["BROKERS"]) as client:
            answer = await client.call(AlterPartitionRequest(broker_id=1, broker_epoch=0), 3)
            assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
            inside = EnvelopeRequest(request_data=b"\x00\x00\x00\x03" + bytes(6))
            assert (await client.call(inside, 0)).error_code == ErrorCode.INVALID_REQUEST
