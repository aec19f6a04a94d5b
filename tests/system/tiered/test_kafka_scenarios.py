"""The 17 scenarios of Kafka's TieredStorageTestHarness.

Each is a function of `brokers`. With as many brokers as in Kafka's suite it is Kafka's scenario,
step by step. Where the subject does not need a second broker there is a form for one broker, which
leaves out replicas and changes of leaders; both forms are listed below.

Source: Kafka, storage/src/test/java/org/apache/kafka/tiered/storage/integration.
"""

import time
from collections.abc import Callable, Mapping, Sequence

import pytest

from tests.fakes.network.client import EARLIEST, LATEST
from tests.system.tiered.conftest import NewCluster
from tests.system.tiered.context import EARLIEST_LOCAL, LATEST_TIERED, KeyValue
from tests.system.tiered.language import Scenario

A, B = "topicA", "topicB"
K0, K1, K2, K3, K4, K5, K6, K7, K8, K9 = ((f"k{n}", f"v{n}") for n in range(10))


def _on(brokers: int, assignment: Mapping[int, Sequence[int]]) -> Mapping[int, Sequence[int]]:
    """An assignment, or with one broker everything on that."""
    return assignment if brokers > 1 else {index: [0] for index in assignment}


def _first(brokers: int, broker: int) -> int:
    return broker if brokers > 1 else 0


def offload_and_consume_from_leader(brokers: int) -> Scenario:
    return (
        Scenario("OffloadAndConsumeFromLeader", brokers=brokers)
        .create_topic(A)
        .expect_segment_offloaded(0, A, 0, 0, K0)
        .expect_segment_offloaded(0, A, 0, 1, K1)
        .expect_earliest_local_offset(A, 0, 2)
        .produce(A, 0, K0, K1, K2)
        .create_topic(B, batches_per_segment=2)
        .expect_earliest_local_offset(B, 0, 4)
        .expect_segment_offloaded(0, B, 0, 0, K0, K1)
        .expect_segment_offloaded(0, B, 0, 2, K2, K3)
        .produce(B, 0, K0, K1, K2, K3, K4)
        # What is remote is known again after a restart.
        .bounce(0)
        .expect_topic_id_in_remote_storage(A)
        .consume(A, 0, 1, total=2, from_remote=1)
        .consume(B, 0, 1, total=4, from_remote=3)
    )


def offload_and_txn_consume_from_leader(brokers: int) -> Scenario:
    scenario = Scenario("OffloadAndTxnConsumeFromLeader", brokers=brokers).create_topic(A)
    for offset, record in enumerate((K0, K1, K2, K3, K4, K5)):
        scenario.expect_segment_offloaded(0, A, 0, offset, record)
    return (
        scenario.expect_earliest_local_offset(A, 0, 6)
        .produce(A, 0, K0, K1, K2, K3, K4, K5, K6)
        .consume(A, 0, 0, total=7, from_remote=6)
    )


def roll_and_offload_active_segment(brokers: int) -> Scenario:
    return (
        Scenario("RollAndOffloadActiveSegment", brokers=brokers)
        .create_topic(A)
        .update_topic_config(A, {"local.retention.ms": "1"})
        .expect_segment_offloaded(0, A, 0, 0, K0)
        .expect_segment_offloaded(0, A, 0, 1, K1)
        .expect_segment_offloaded(0, A, 0, 2, K2)
        .expect_segment_offloaded(0, A, 0, 3, K3)
        .expect_earliest_local_offset(A, 0, 4)
        .produce(A, 0, K0, K1, K2, K3)
        .consume(A, 0, 0, total=4, from_remote=4)
    )


def _delete_segments(name: str, brokers: int, configs: Mapping[str, str]) -> Scenario:
    # The last record is of the future, so that its segment is not rolled and deleted as well.
    later = KeyValue(*K3, int(time.time() * 1000) + 3_600_000)
    return (
        Scenario(name, brokers=brokers)
        .create_topic(A)
        .expect_segment_offloaded(0, A, 0, 0, K0)
        .expect_segment_offloaded(0, A, 0, 1, K1)
        .expect_segment_offloaded(0, A, 0, 2, K2)
        .expect_earliest_local_offset(A, 0, 3)
        .produce(A, 0, K0, K1, K2, later)
        .update_topic_config(A, configs)
        .expect_deletion_in_remote(A, 0, 3)
        .wait_for_remote_segment_deletion(A)
        .expect_leader_epoch_checkpoint(0, A, 0, 0, 3)
        .consume(A, 0, 0, total=1, from_remote=0)
    )


def delete_segments_by_retention_time(brokers: int) -> Scenario:
    return _delete_segments("DeleteSegmentsByRetentionTime", brokers, {"retention.ms": "1"})


def delete_segments_by_retention_size(brokers: int) -> Scenario:
    return _delete_segments("DeleteSegmentsByRetentionSize", brokers, {"retention.bytes": "1"})


def delete_segments_due_to_log_start_offset_breach(brokers: int) -> Scenario:
    other = _first(brokers, 1)
    scenario = (
        Scenario("DeleteSegmentsDueToLogStartOffsetBreach", brokers=brokers)
        .create_topic(A, batches_per_segment=2, assignment=_on(brokers, {0: [0, 1]}))
        .expect_segment_offloaded(0, A, 0, 0, K0, K1)
        .expect_segment_offloaded(0, A, 0, 2, K2, K3)
        .expect_earliest_local_offset(A, 0, 4)
        .produce(A, 0, K0, K1, K2, K3, K4)
        .expect_deletion_in_remote(A, 0, 1)
        .delete_records(A, 0, 3)
        .expect_leader_epoch_checkpoint(0, A, 0, 0, 3)
        .consume(A, 0, 3, total=2, from_remote=1)
    )
    if brokers > 1:
        # From here on in leader epoch 1.
        scenario.expect_leader(A, 0, other, elect=True)
    # K4 was produced before: only what is new is expected.
    return (
        scenario.expect_segment_offloaded(other, A, 0, 4, K5)
        .expect_segment_offloaded(other, A, 0, 6, K6, K7)
        .expect_earliest_local_offset(A, 0, 8)
        .produce(A, 0, K5, K6, K7, K8, K9)
        .expect_deletion_in_remote(A, 0, 2)
        .delete_records(A, 0, 7)
        .consume(A, 0, 7, total=3, from_remote=1)
    )


def delete_topic(brokers: int) -> Scenario:
    assignment = _on(brokers, {0: [0, 1], 1: [1, 0]})
    other = _first(brokers, 1)
    return (
        Scenario("DeleteTopic", brokers=brokers)
        .create_topic(A, 2, assignment=assignment)
        .expect_segment_offloaded(0, A, 0, 0, K0)
        .expect_segment_offloaded(0, A, 0, 1, K1)
        .expect_earliest_local_offset(A, 0, 2)
        .produce(A, 0, K0, K1, K2)
        .expect_segment_offloaded(other, A, 1, 0, K0)
        .expect_segment_offloaded(other, A, 1, 1, K1)
        .expect_earliest_local_offset(A, 1, 2)
        .produce(A, 1, K0, K1, K2)
        .expect_deletion_in_remote(A, 0, 2)
        .expect_deletion_in_remote(A, 1, 2)
        .delete_topic(A)
        .expect_empty_remote_storage(A, 0)
        .expect_empty_remote_storage(A, 1)
    )


# Without copying, local retention must be the same as the whole retention.
_COPY_DISABLED = {
    "remote.log.copy.disable": "true",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
}
_COPY_ENABLED = {"remote.log.copy.disable": "false", "local.retention.bytes": "1"}
_DISABLED = {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}


def disable_remote_log_on_topic(brokers: int) -> Scenario:
    return (
        Scenario("DisableRemoteLogOnTopic", brokers=brokers)
        .create_topic(A, assignment=_on(brokers, {0: [0, 1]}))
        .expect_segment_offloaded(0, A, 0, 0, K0)
        .expect_segment_offloaded(0, A, 0, 1, K1)
        .expect_earliest_local_offset(A, 0, 2)
        .produce(A, 0, K0, K1, K2)
        .update_topic_config(A, _COPY_DISABLED)
        .consume(A, 0, 0, total=3, from_remote=2)
        .update_topic_config(A, _COPY_ENABLED)
        .expect_earliest_local_offset(A, 0, 3)
        .produce(A, 0, K3)
        .update_topic_config(A, _COPY_DISABLED)
        .consume(A, 0, 0, total=4, from_remote=3)
        # Remote retention goes on while nothing is copied.
        .expect_deletion_in_remote(A, 0, 1)
        .delete_records(A, 0, 1)
        .wait_for_remote_segment_deletion(A)
        .update_topic_config(A, _DISABLED)
        .expect_empty_remote_storage(A, 0)
        .consume(A, 0, 3, total=1, from_remote=0)
    )


def enable_remote_log_on_topic(brokers: int) -> Scenario:
    other = _first(brokers, 1)
    return (
        Scenario("EnableRemoteLogOnTopic", brokers=brokers)
        .create_topic(A, 2, assignment=_on(brokers, {0: [0, 1], 1: [1, 0]}), tiered=False)
        .expect_earliest_local_offset(A, 0, 0)
        .produce(A, 0, K0, K1, K2)
        .expect_earliest_local_offset(A, 1, 0)
        .produce(A, 1, K0, K1, K2)
        .update_topic_config(A, {"remote.storage.enable": "true"})
        .expect_segment_offloaded(0, A, 0, 3, K3)
        .expect_earliest_local_offset(A, 0, 4)
        .produce(A, 0, K3, K4)
        .expect_segment_offloaded(other, A, 1, 3, K3)
        .expect_earliest_local_offset(A, 1, 4)
        .produce(A, 1, K3, K4)
        .consume(A, 0, 0, total=5, from_remote=4)
        .consume(A, 1, 0, total=5, from_remote=4)
    )


_CHECKPOINTS = frozenset(
    {
        "replication-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        ".kafka_cleanshutdown",
    }
)


def fetch_from_leader_with_corrupted_checkpoint(brokers: int) -> Scenario:
    scenario = (
        Scenario("FetchFromLeaderWithCorruptedCheckpoint", brokers=brokers)
        .create_topic(A, assignment=_on(brokers, {0: [0, 1]}))
        .expect_segment_offloaded(0, A, 0, 0, K0)
        .expect_segment_offloaded(0, A, 0, 1, K1)
        .expect_earliest_local_offset(A, 0, 2)
        .produce(A, 0, K0, K1, K2)
        .consume(A, 0, 0, total=3, from_remote=2)
    )
    if brokers > 1:
        scenario.stop(1)
    scenario.stop(0).erase_broker_storage(0, _CHECKPOINTS.__contains__).start(0)
    if brokers > 1:
        scenario.start(1)
    return (
        scenario.expect_segment_offloaded(0, A, 0, 3, K3)
        .expect_earliest_local_offset(A, 0, 4)
        .produce(A, 0, K3, K4)
        .consume(A, 0, 0, total=5, from_remote=4)
    )


def list_offsets(brokers: int) -> Scenario:
    now = int(time.time() * 1000) - 60_000
    k0, k1, k2, k3, k4, k5 = (
        KeyValue(*record, now + n) for n, record in enumerate((K0, K1, K2, K3, K4, K5))
    )
    epoch = 1 if brokers > 1 else 0
    other = _first(brokers, 1)
    scenario = (
        Scenario("ListOffsets", brokers=brokers)
        .create_topic(A, batches_per_segment=2, assignment=_on(brokers, {0: [0, 1]}))
        .expect_earliest_local_offset(A, 0, 2)
        .expect_segment_offloaded(0, A, 0, 0, k0, k1)
        .produce(A, 0, k0, k1, k2)
    )
    if brokers > 1:
        scenario.reassign_replica(A, 0, [1, 0]).expect_leader(A, 0, 1, elect=True)
    scenario = (
        scenario.expect_earliest_local_offset(A, 0, 4)
        # k2 was produced before: only what is new is expected.
        .expect_segment_offloaded(other, A, 0, 2, k3)
        .produce(A, 0, k3, k4, k5)
        .expect_list_offsets(A, 0, EARLIEST, epoch=0, offset=0)
        .expect_list_offsets(A, 0, EARLIEST_LOCAL, epoch=epoch, offset=4)
        .expect_list_offsets(A, 0, LATEST_TIERED, epoch=epoch, offset=3)
        .expect_list_offsets(A, 0, LATEST, epoch=epoch, offset=6)
        # By time, on the local side.
        .expect_list_offsets(A, 0, now + 6, epoch=-1, offset=-1)
        .expect_list_offsets(A, 0, now + 5, epoch=epoch, offset=5)
        .expect_list_offsets(A, 0, now + 4, epoch=epoch, offset=4)
        # By time, on the remote side.
        .expect_list_offsets(A, 0, now - 1, epoch=0, offset=0)
        .expect_list_offsets(A, 0, now, epoch=0, offset=0)
        .expect_list_offsets(A, 0, now + 1, epoch=0, offset=1)
        .expect_list_offsets(A, 0, now + 3, epoch=epoch, offset=3)
        .expect_deletion_in_remote(A, 0, 1)
        .delete_records(A, 0, 3)
        .expect_list_offsets(A, 0, EARLIEST, epoch=epoch, offset=3)
        .expect_list_offsets(A, 0, EARLIEST_LOCAL, epoch=epoch, offset=4)
        # Nothing remote is left: both beginnings are one.
        .expect_deletion_in_remote(A, 0, 1)
        .delete_records(A, 0, 4)
        .expect_list_offsets(A, 0, EARLIEST, epoch=epoch, offset=4)
        .expect_list_offsets(A, 0, EARLIEST_LOCAL, epoch=epoch, offset=4)
    )
    # Offset 3 is below the first entry of the epochs with two brokers, and in epoch 0 with one.
    return scenario.expect_list_offsets(
        A, 0, LATEST_TIERED, epoch=-1, offset=3
    ).expect_list_offsets(A, 0, LATEST, epoch=epoch, offset=6)


def partitions_expand(brokers: int) -> Scenario:
    other = _first(brokers, 1)
    growth = _on(brokers, {1: [0, 1], 2: [1, 0]})
    scenario = (
        Scenario("PartitionsExpand", brokers=brokers)
        .create_topic(A, assignment=_on(brokers, {0: [0, 1]}))
        .expect_segment_offloaded(0, A, 0, 0, K0)
        .expect_segment_offloaded(0, A, 0, 1, K1)
        .expect_earliest_local_offset(A, 0, 2)
        .produce(A, 0, K0, K1, K2)
        .create_partitions(A, 3, growth)
        .consume(A, 0, 0, total=3, from_remote=2)
        .expect_leader(A, 1, 0)
        .expect_leader(A, 2, other)
    )
    for partition, leader in ((1, 0), (2, other)):
        scenario.expect_segment_offloaded(leader, A, partition, 0, K0)
        scenario.expect_segment_offloaded(leader, A, partition, 1, K1)
        scenario.expect_earliest_local_offset(A, partition, 2)
        scenario.produce(A, partition, K0, K1, K2)
    return (
        scenario.expect_segment_offloaded(0, A, 0, 3, K3)
        .expect_segment_offloaded(0, A, 0, 4, K4)
        .expect_earliest_local_offset(A, 0, 5)
        .produce(A, 0, K3, K4, K5)
        .consume(A, 0, 0, total=6, from_remote=5)
        .consume(A, 1, 0, total=3, from_remote=2)
        .consume(A, 2, 1, total=2, from_remote=1)
    )


def _reassign(name: str, brokers: int, replicas: Sequence[int]) -> Scenario:
    return (
        Scenario(name, brokers=brokers)
        # As many partitions as it takes to use every metadata partition.
        .create_topic(A, 50, replication_factor=2)
        .expect_metadata_partitions(A, range(2))
        .create_topic(B, assignment={0: [0]})
        .expect_segment_offloaded(0, B, 0, 0, K0)
        .expect_segment_offloaded(0, B, 0, 1, K1)
        .expect_earliest_local_offset(B, 0, 2)
        .produce(B, 0, K0, K1, K2)
        .reassign_replica(B, 0, replicas)
        .expect_leader(B, 0, 1, elect=True)
        .expect_earliest_local_offset(B, 0, 3)
        .produce(B, 0, K3)
        .consume(B, 0, 0, total=4, from_remote=3)
    )


def reassign_replica_expand(brokers: int) -> Scenario:
    return _reassign("ReassignReplicaExpand", brokers, [0, 1])


def reassign_replica_move(brokers: int) -> Scenario:
    return _reassign("ReassignReplicaMove", brokers, [1])


def reassign_replica_shrink(brokers: int) -> Scenario:
    scenario = Scenario("ReassignReplicaShrink", brokers=brokers).create_topic(
        A, 2, assignment={0: [0, 1], 1: [1, 0]}
    )
    for partition, leader in ((0, 0), (1, 1)):
        scenario.expect_segment_offloaded(leader, A, partition, 0, K0)
        scenario.expect_segment_offloaded(leader, A, partition, 1, K1)
        scenario.expect_earliest_local_offset(A, partition, 2)
        scenario.produce(A, partition, K0, K1, K2)
    return (
        scenario.shrink_replica(A, 0, [1])
        .shrink_replica(A, 1, [0])
        .expect_leader(A, 0, 1)
        .expect_leader(A, 1, 0)
        .expect_earliest_local_offset(A, 0, 3)
        .produce(A, 0, K3)
        .expect_earliest_local_offset(A, 1, 3)
        .produce(A, 1, K3)
        .consume(A, 0, 0, total=4, from_remote=3)
        .consume(A, 1, 0, total=4, from_remote=3)
    )


def alter_log_dir(brokers: int) -> Scenario:
    return (
        Scenario("AlterLogDir", brokers=brokers)
        .create_topic(B, assignment={0: [1, 0]})
        .expect_segment_offloaded(1, B, 0, 0, K0)
        .expect_segment_offloaded(1, B, 0, 1, K1)
        .expect_earliest_local_offset(B, 0, 2)
        .produce(B, 0, K0, K1, K2)
        .alter_log_dir(B, 0, 0)
        # The moved replica can still lead.
        .expect_leader(B, 0, 0, elect=True)
        .expect_earliest_local_offset(B, 0, 3)
        .produce(B, 0, K3)
        .consume(B, 0, 0, total=4, from_remote=3)
    )


Make = Callable[[int], Scenario]

# TransactionsWithTieredStore, the seventeenth, is in test_transactions.py.
AS_IN_KAFKA: tuple[tuple[Make, int], ...] = (
    (offload_and_consume_from_leader, 1),
    (offload_and_txn_consume_from_leader, 1),
    (roll_and_offload_active_segment, 1),
    (delete_segments_by_retention_time, 1),
    (delete_segments_by_retention_size, 1),
    (delete_segments_due_to_log_start_offset_breach, 2),
    (delete_topic, 2),
    (disable_remote_log_on_topic, 2),
    (enable_remote_log_on_topic, 2),
    (fetch_from_leader_with_corrupted_checkpoint, 2),
    (list_offsets, 2),
    (partitions_expand, 2),
    (reassign_replica_expand, 2),
    (reassign_replica_move, 2),
    (reassign_replica_shrink, 2),
    (alter_log_dir, 2),
)

ON_ONE_BROKER: tuple[Make, ...] = (
    delete_segments_due_to_log_start_offset_breach,
    delete_topic,
    disable_remote_log_on_topic,
    enable_remote_log_on_topic,
    fetch_from_leader_with_corrupted_checkpoint,
    list_offsets,
    partitions_expand,
)

TWO_METADATA_PARTITIONS = {"rlmm.config.remote.log.metadata.topic.num.partitions": "2"}
PROPERTIES: dict[Make, dict[str, str]] = {
    # Room for one entry: what is evicted is fetched again.
    offload_and_txn_consume_from_leader: {"remote.log.index.file.cache.total.size.bytes": "1"},
    reassign_replica_expand: TWO_METADATA_PARTITIONS,
    reassign_replica_move: TWO_METADATA_PARTITIONS,
    reassign_replica_shrink: TWO_METADATA_PARTITIONS,
}


@pytest.mark.parametrize(
    ("make", "brokers"),
    [
        pytest.param(
            make,
            brokers,
            id=f"{make.__name__}-{brokers}",
            marks=[pytest.mark.cluster] if brokers > 1 else [],
        )
        for make, brokers in (*AS_IN_KAFKA, *((make, 1) for make in ON_ONE_BROKER))
    ],
)
async def test_scenario(new_cluster: NewCluster, make: Make, brokers: int) -> None:
    cluster = new_cluster(PROPERTIES.get(make), brokers=brokers)
    checks = await make(brokers).run(cluster)
    assert checks > 0


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [make for make, brokers in AS_IN_KAFKA if brokers > 1],
)
async def test_scenario_of_two_on_three(new_cluster: NewCluster, make: Make) -> None:
    """A third broker has what no replica of the scenario is on: coordinators, metadata, itself."""
    checks = await make(2).run(new_cluster(PROPERTIES.get(make), brokers=3))
    assert checks > 0


@pytest.mark.parametrize(
    "make",
    [
        offload_and_consume_from_leader,
        delete_topic,
        list_offsets,
        *(
            pytest.param(make, marks=pytest.mark.slow)
            for make in (
                offload_and_txn_consume_from_leader,
                roll_and_offload_active_segment,
                delete_segments_by_retention_time,
                delete_segments_by_retention_size,
                delete_segments_due_to_log_start_offset_breach,
                disable_remote_log_on_topic,
                enable_remote_log_on_topic,
                fetch_from_leader_with_corrupted_checkpoint,
                partitions_expand,
            )
        ),
    ],
)
async def test_scenario_on_s3(new_cluster: NewCluster, s3_url: str, make: Make) -> None:
    cluster = new_cluster(PROPERTIES.get(make), s3=s3_url)
    checks = await make(1).run(cluster)
    assert checks > 0
