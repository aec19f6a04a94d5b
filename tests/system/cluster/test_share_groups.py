"""Share groups whose group, state and partitions are on different brokers, one of which dies."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker.coordinator.persister import SharePartitionKey
from protocol.error_codes import ErrorCode as E
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.fakes.network.client import RefusedError
from tests.harness.brokers import ClusterHarness
from tests.harness.cluster_client import GROUP, WITHIN_S, ClusterClient, check
from tests.system.cluster.test_coordinator_failover import REPLICATED

SHARE = 2
GROUP_RESOURCE = 32
PARTITIONS = range(3)
ACCEPT = 1


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(tmp_path, **REPLICATED) as cluster:
        yield cluster


class Consumer:
    """A member of share group g that reads topic t: one session with each leader."""

    def __init__(self, cluster: ClusterHarness, client: ClusterClient, member_id: str) -> None:
        self._cluster = cluster
        self._client = client
        self._member_id = member_id
        self._epochs: dict[int, int] = {}

    async def join(self) -> None:
        """Heartbeat until every partition is assigned, so that its state is there."""
        epoch, assigned = 0, 0
        while assigned < len(PARTITIONS):
            request = ShareGroupHeartbeatRequest(
                group_id="g",
                member_id=self._member_id,
                member_epoch=epoch,
                subscribed_topic_names=["t"],
            )

            async def beat(request: ShareGroupHeartbeatRequest = request) -> Any:
                answer = await self._client.coordinated(GROUP, "g", request)
                check(answer.error_code)
                return answer

            answer = await self._client.retry(beat)
            epoch = answer.member_epoch
            if answer.assignment is not None:
                assigned = sum(len(t.partitions) for t in answer.assignment.topic_partitions)
            await asyncio.sleep(0.02)

    def _topic_id(self) -> Any:
        controller = self._cluster.running[0].controller
        assert controller is not None
        return controller.image.topics["t"].topic_id

    async def acquire(self, index: int, most: int) -> list[int]:
        """Offsets of records that it has now, of one partition; some, once there are any."""

        async def attempt() -> list[int]:
            leader = await self._client.leader("t", index)
            client = await self._client.at(leader)
            request = ShareFetchRequest(
                group_id="g",
                member_id=self._member_id,
                share_session_epoch=self._epochs.get(leader, 0),
                max_wait_ms=200,
                min_bytes=1,
                max_bytes=1 << 20,
                max_records=most,
                batch_size=most,
                topics=[
                    FetchTopic(
                        topic_id=self._topic_id(),
                        partitions=[FetchPartition(partition_index=index)],
                    )
                ],
            )
            answer = await asyncio.wait_for(client.call(request), WITHIN_S)
            check(answer.error_code)
            self._epochs[leader] = self._epochs.get(leader, 0) + 1
            found = [
                offset
                for topic in answer.responses
                for partition in topic.partitions
                if partition.partition_index == index
                for acquired in partition.acquired_records
                for offset in range(acquired.first_offset, acquired.last_offset + 1)
            ]
            for topic in answer.responses:
                for partition in topic.partitions:
                    check(partition.error_code)
            if not found:
                raise RefusedError(E.OFFSET_NOT_AVAILABLE, "nothing yet")
            return found

        offsets: list[int] = await self._client.retry(attempt)
        return offsets

    async def accept(self, index: int, first: int, last: int) -> None:
        """Acknowledge records that it has."""
        leader = await self._client.leader("t", index)
        batch = AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=[ACCEPT]
        )
        request = ShareAcknowledgeRequest(
            group_id="g",
            member_id=self._member_id,
            share_session_epoch=self._epochs[leader],
            topics=[
                AcknowledgeTopic(
                    topic_id=self._topic_id(),
                    partitions=[
                        AcknowledgePartition(partition_index=index, acknowledgement_batches=[batch])
                    ],
                )
            ],
        )
        answer = await (await self._client.at(leader)).call(request)
        check(answer.error_code)
        self._epochs[leader] += 1
        check(answer.responses[0].partitions[0].error_code)


async def prepared(cluster: ClusterHarness, client: ClusterClient, reset: str = "earliest") -> None:
    """Share groups are on, group g begins as `reset` says, t has 10 records a partition."""
    update = FeatureUpdateKey(feature="share.version", max_version_level=1, upgrade_type=1)
    answer = await (await client.any()).call(
        UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update])
    )
    check(answer.error_code)
    config = AlterableConfig(name="share.auto.offset.reset", value=reset)
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name="g", configs=[config]
    )
    altered = await (await client.any()).call(IncrementalAlterConfigsRequest(resources=[resource]))
    check(altered.responses[0].error_code)
    await cluster.create_topic("t", partitions=len(PARTITIONS))
    for index in PARTITIONS:
        leader = await client.at(await cluster.leading("t", index))
        for _ in range(2):
            await leader.produce("t", *[b"x"] * 5, partition=index)


@pytest.mark.parametrize("victim", ["leader", "state", "group"])
async def test_what_was_acknowledged_is_delivered_no_more_and_the_rest_is(
    cluster: ClusterHarness, victim: str
) -> None:
    """Whichever dies: the partition's leader, its state's coordinator, or the group's."""
    client = ClusterClient(cluster)
    await prepared(cluster, client)
    first = Consumer(cluster, client, "m" * 22)
    await first.join()
    for index in PARTITIONS:
        assert await first.acquire(index, 5) == [0, 1, 2, 3, 4]
        await first.accept(index, 0, 4)
    controller = cluster.running[0].controller
    assert controller is not None
    key = SharePartitionKey("g", controller.image.topics["t"].topic_id, 0)
    node_id = {
        "leader": await client.leader("t", 0),
        "state": await client.coordinator(SHARE, key.coordinator_key()),
        "group": await client.coordinator(GROUP, "g"),
    }[victim]
    await cluster.kill(node_id, revoke=True)
    second = Consumer(cluster, client, "n" * 22)
    for index in PARTITIONS:
        assert await second.acquire(index, 10) == [5, 6, 7, 8, 9]
        await second.accept(index, 5, 9)


async def test_what_a_member_of_a_group_that_began_at_the_end_had_is_delivered_again(
    cluster: ClusterHarness,
) -> None:
    """It has acknowledged nothing yet when the leader dies: the next one begins where that did."""
    client = ClusterClient(cluster)
    await prepared(cluster, client, "latest")
    first = Consumer(cluster, client, "m" * 22)
    await first.join()
    reading = asyncio.create_task(first.acquire(0, 5))
    node_id = await cluster.leading("t", 0)
    # Not before the start offset is chosen: what lies before it is not the group's.
    controller = cluster.running[0].controller
    assert controller is not None
    key = SharePartitionKey("g", controller.image.topics["t"].topic_id, 0)

    def has_begun() -> bool:
        share = cluster.broker(node_id).share
        one = None if share is None else share.get(key)
        return one is not None and one.is_active

    await cluster.until(has_begun)
    await (await client.at(node_id)).produce("t", *[b"x"] * 5, partition=0)
    assert await reading == [10, 11, 12, 13, 14]
    await cluster.kill(node_id, revoke=True)
    second = Consumer(cluster, client, "n" * 22)
    assert await second.acquire(0, 10) == [10, 11, 12, 13, 14]


async def test_offsets_of_partitions_are_described_whoever_leads_them(
    cluster: ClusterHarness,
) -> None:
    """The group's coordinator does; where a partition ends is known to its leader only."""
    client = ClusterClient(cluster)
    await prepared(cluster, client)
    member = Consumer(cluster, client, "m" * 22)
    await member.join()
    for index in PARTITIONS:
        assert await member.acquire(index, 5) == [0, 1, 2, 3, 4]
        await member.accept(index, 0, 4)
    assert len({await client.leader("t", index) for index in PARTITIONS}) == len(PARTITIONS)
    request = DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)]
    )
    (group,) = (await client.coordinated(GROUP, "g", request)).groups
    check(group.error_code)
    (topic,) = group.topics
    assert {(p.partition_index, E(p.error_code), p.lag) for p in topic.partitions} == {
        (index, E.NONE, 5) for index in PARTITIONS
    }
