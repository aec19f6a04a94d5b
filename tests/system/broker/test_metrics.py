"""`/metrics` after a scripted load, beside what the client and the disk say."""

from collections import Counter
from pathlib import Path

from broker.metrics.network import api_label
from protocol.error_codes import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.records.builder import build_batch
from tests.fakes.network.client import Client, produce_request, read_of
from tests.system.conftest import Metrics, Node, StartNode, until


async def load(client: Client) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Writes and reads of two topics; returns bytes in, records in and bytes out, per topic."""
    bytes_in: Counter[str] = Counter()
    records_in: Counter[str] = Counter()
    bytes_out: Counter[str] = Counter()
    for topic, partitions in (("a", 2), ("b", 1)):
        await client.create_topic(topic, partitions)
        for number in range(1, 30):
            values = [b"v" * number] * number
            batch = build_batch(
                [(None, v, (), 1_700_000_000_000) for v in values], codec=number % 5
            )
            acks = (1, -1, 0)[number % 3]
            answer = client.send(produce_request(topic, number % partitions, batch, acks=acks))
            if acks:
                assert (await answer).responses[0].partition_responses[0].error_code == 0
            bytes_in[topic] += len(batch)
            records_in[topic] += number
        for index in range(partitions):
            read = await client.fetch(topic, 0, partition=index)
            bytes_out[topic] += read.size
            again = await client.fetch(topic, read.records[-3].offset, partition=index)
            bytes_out[topic] += again.size
    return bytes_in, records_in, bytes_out


async def test_counters_equal_the_ground_truth(node: Node, tmp_path: Path) -> None:
    client = await node.client()
    bytes_in, records_in, bytes_out = await load(client)
    refused = await client.try_produce("a", [(None, b"x")], partition=0, acks=7)
    assert refused.error_code
    assert (await client.fetch("b", 10_000)).error
    await client.call(DescribeClusterRequest())
    await client.commit("g", "a", {0: 5, 1: 7})
    await client.commit("h", "b", {0: 100})

    metrics = await node.metrics()
    topics = "kafka_server_brokertopicmetrics"
    for topic in ("a", "b"):
        assert metrics.of(f"{topics}_bytesin_total", topic=topic) == bytes_in[topic]
        assert metrics.of(f"{topics}_messagesin_total", topic=topic) == records_in[topic]
        assert metrics.of(f"{topics}_bytesout_total", topic=topic) == bytes_out[topic]
        assert metrics.of(f"{topics}_totalproducerequests_total", topic=topic) == 29
    assert metrics.of(f"{topics}_failedproducerequests_total", topic="a") == 1
    assert metrics.of(f"{topics}_failedproducerequests_total", topic="b") == 0
    assert metrics.of(f"{topics}_failedfetchrequests_total", topic="a") == 0
    assert metrics.of(f"{topics}_failedfetchrequests_total", topic="b") == 1
    assert metrics.of(f"{topics}_totalfetchrequests_total", topic="a") == 4
    assert metrics.of(f"{topics}_totalfetchrequests_total", topic="b") == 3

    requests = "kafka_network_requestmetrics"
    for api, count in client.sent.items():
        name = api_label(api)
        assert metrics.of(f"{requests}_requests_total", request=name) == count, name
        assert (
            metrics.of(f"{requests}_requestbytes_total", request=name) == client.sent_bytes[api]
        ), name
        assert metrics.of(f"{requests}_totaltimems_count", request=name) == count, name
        assert metrics.of(f"{requests}_errors_total", request=name) == 0
    labels = {"listener": "PLAINTEXT", "networkProcessor": "0"}
    incoming = sum(client.sent_bytes.values()) + 4 * sum(client.sent.values())
    assert metrics.of("kafka_server_socketservermetrics_incoming_byte_total", **labels) == incoming
    assert metrics.of("kafka_server_socketservermetrics_connection_count", **labels) == 1

    for directory in (tmp_path / "data").glob("*-[0-9]*"):
        topic, _, index = directory.name.rpartition("-")
        partition = {"topic": topic, "partition": index}
        files = list(directory.glob("*.log"))
        size = sum(path.stat().st_size for path in files)
        assert metrics.of("kafka_log_log_size", **partition) == size
        assert metrics.of("kafka_log_log_numlogsegments", **partition) == len(files)
    ends = {("a", 0): 5, ("a", 1): 7, ("b", 0): 100}
    for (topic, number), committed in ends.items():
        end = await client.offset(topic, partition=number)
        group = "g" if topic == "a" else "h"
        where = {"topic": topic, "partition": str(number)}
        assert metrics.of("kafka_log_log_logendoffset", **where) == end
        assert metrics.of("kafka_consumergroup_current_offset", group=group, **where) == committed
        assert metrics.of("kafka_consumergroup_lag", group=group, **where) == end - committed
    groups = "kafka_coordinator_group_groupmetadatamanager"
    assert metrics.of(f"{groups}_numgroups") == metrics.of(f"{groups}_numgroupsempty") == 2
    assert metrics.of(f"{groups}_numoffsets") == 3
    assert metrics.of("kafka_server_replicamanager_partitioncount") == 6
    assert metrics.of("kafka_controller_kafkacontroller_globaltopiccount") == 3
    for name in ("varve_requests_malformed_total", "varve_requests_unsupported_total"):
        assert metrics.of(name) == 0


async def test_waiting_requests_and_connections_are_visible(node: Node) -> None:
    """While they wait, and no more when they have been answered or have left."""
    client, other = await node.client(), await node.client()
    await client.create_topic("t")
    parked = client.start_fetch("t", 0, max_wait_ms=60_000)
    await until(lambda: node.broker.replicas.delayed_fetch.parked == 1)
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"
    metrics = await node.metrics()
    assert metrics.of(purgatory, delayedOperation="Fetch") == 1
    assert connections(metrics) == 2
    await other.produce("t", b"v")
    assert [r.value for r in read_of(await parked).records] == [b"v"]
    assert (await node.metrics()).of(purgatory, delayedOperation="Fetch") == 0
    _left = client.start_fetch("t", 1, max_wait_ms=60_000)
    await until(lambda: node.broker.replicas.delayed_fetch.parked == 1)
    await client.close()
    await until(lambda: node.broker.replicas.delayed_fetch.parked == 0)
    metrics = await node.metrics()
    assert connections(metrics) == 1
    assert (
        metrics.of("kafka_server_delayedoperationpurgatory_expires_total", delayedOperation="Fetch")
        == 0
    )


def connections(metrics: Metrics) -> float:
    name = "kafka_server_socketservermetrics_connection_count"
    return sum(value for (sample, _), value in metrics.items() if sample == name)


async def test_group_states_follow_the_members(node: Node) -> None:
    client = await node.client()
    await client.find_coordinator("g")
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    first = await client.call(join)
    join.member_id = first.member_id
    joined = await client.call(join)
    assert joined.error_code == 0
    groups = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    metrics = await node.metrics()
    assert metrics.of(f"{groups}completingrebalance") == 1
    synced = await client.call(
        SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"x")],
        )
    )
    assert (synced.error_code, synced.assignment) == (0, b"x")
    metrics = await node.metrics()
    assert metrics.of(f"{groups}completingrebalance") == 0
    assert metrics.of(f"{groups}stable") == 1
    assert metrics.of("kafka_consumergroup_members", group="g") == 1
    completed = "kafka_coordinator_group_groupcoordinatormetrics_group_completed_rebalance_total"
    assert metrics.of(completed) == 1
    assert [group.group_id for group in (await client.call(ListGroupsRequest())).groups] == ["g"]


async def test_deleted_topics_leave_the_page(node: Node) -> None:
    """Else every topic that ever was stays a time series."""
    client = await node.client()
    await client.create_topic("gone")
    await client.produce("gone", b"v")
    await client.commit("g", "gone", {0: 1})
    await client.delete_topic("gone")

    async def left() -> bool:
        samples = await node.metrics()
        return not any(("topic", "gone") in labels for _, labels in samples)

    await until(left)


async def test_recreated_brokers_count_from_nothing(node: Node, start_node: StartNode) -> None:
    """Counters are of the process; sizes and offsets are of the logs."""
    client = await node.client()
    await client.create_topic("t")
    await client.produce("t", b"v", b"w")
    await node.stop()
    metrics = await (await start_node()).metrics()
    assert metrics.of("kafka_server_brokertopicmetrics_messagesin_total", topic="t") == 0
    assert metrics.of("kafka_log_log_logendoffset", topic="t", partition="0") == 2


async def test_consumer_groups_are_counted_by_their_state(node: Node) -> None:
    client = await node.client()
    await client.create_topic("t", 2)
    await client.find_coordinator("g")
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    joined = await client.call(beat)
    assert joined.error_code == 0
    groups = "kafka_server_group_coordinator_metrics"
    metrics = await node.metrics()
    assert metrics.of(f"{groups}_group_count", protocol="consumer") == 1
    assert metrics.of(f"{groups}_group_count", protocol="classic") == 0
    assert metrics.of(f"{groups}_consumer_group_count", state="stable") == 1
    assert metrics.of(f"{groups}_consumer_group_rebalance_total") == 1
    assert metrics.of("kafka_consumergroup_members", group="g") == 1
    beat.member_epoch = -1
    assert (await client.call(beat)).error_code == 0
    metrics = await node.metrics()
    assert metrics.of(f"{groups}_consumer_group_count", state="stable") == 0
    assert metrics.of(f"{groups}_consumer_group_count", state="empty") == 1


async def test_transactions_are_counted_from_begin_to_end(node: Node) -> None:
    client = await node.client()
    await client.create_topic("t")

    async def found() -> None:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])
        assert (await client.call(request)).coordinators[0].error_code == 0

    async def begun() -> tuple[int, int]:
        while True:
            request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
            answer = await client.call(request, 4)
            if not answer.error_code:
                return answer.producer_id, answer.producer_epoch
            assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    await found()
    producer_id, epoch = await begun()
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    added = await client.call(add, 3)
    assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    batch = build_batch(
        [(None, b"v", (), 1_700_000_000_000)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    produce = produce_request("t", 0, batch)
    produce.transactional_id = "x"
    written = await client.call(produce, 11)
    assert written.responses[0].partition_responses[0].error_code == 0
    names = "varve_transaction_coordinator"
    metrics = await node.metrics()
    assert metrics.of(f"{names}_transactional_ids", state="Ongoing") == 1
    assert metrics.of("varve_partitions_with_open_transactions") == 1
    assert metrics.of("kafka_server_replicamanager_produceridcount") == 1
    end = EndTxnRequest(
        transactional_id="x", producer_id=producer_id, producer_epoch=epoch, committed=True
    )
    assert (await client.call(end, 4)).error_code == 0
    await until(
        lambda: node.broker.transactions is not None and node.broker.transactions.stats.commits == 1
    )
    metrics = await node.metrics()
    assert metrics.of(f"{names}_transactional_ids", state="CompleteCommit") == 1
    assert metrics.of(f"{names}_ended_total", result="commit") == 1
    assert metrics.of(f"{names}_oldest_open_ms") == 0
    assert metrics.of("varve_partitions_with_open_transactions") == 0


async def test_share_groups_are_counted(node: Node) -> None:
    client = await node.client()
    await client.create_topic("t", 2)
    await client.find_coordinator("g")
    await client.call(
        FindCoordinatorRequest(key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAA:0"])
    )
    beat = ShareGroupHeartbeatRequest(
        group_id="g", member_id="AAAAAAAAAAAAAAAAAAAAAA", subscribed_topic_names=["t"]
    )
    while (await client.call(beat)).error_code:
        pass
    coordinator = node.broker.share_coordinator
    assert coordinator is not None
    await until(lambda: coordinator.state_count == 2)
    metrics = await node.metrics()
    groups = "kafka_server_group_coordinator_metrics"
    assert metrics.of(f"{groups}_group_count", protocol="share") == 1
    assert metrics.of(f"{groups}_share_group_rebalance_total") >= 1
    assert metrics.of("varve_share_coordinator_states") == 2
    assert metrics.of("varve_share_partitions") == 0
    assert metrics.of("varve_share_fetches_waiting") == 0
    assert metrics.of("kafka_server_sharesessioncache_sharesessionscount") == 0
    assert metrics.of("varve_share_coordinator_loading") == 0
    for coordinator_name in ("group", "share"):
        prefix = f"varve_{coordinator_name}_coordinator"
        assert metrics.of(f"{prefix}_loads_total") >= 1
        assert metrics.of(f"{prefix}_load_failures_total") == 0
