"""Log directories that brokers say their replicas are in (AssignReplicasToDirs, KIP-858), planned.

    broker epoch is not the registered one       STALE_BROKER_EPOCH, the whole request
    topic id is unknown                          UNKNOWN_TOPIC_ID
    partition is unknown                         UNKNOWN_TOPIC_OR_PARTITION
    the broker has no replica of it              NOT_LEADER_OR_FOLLOWER
    the directory does not work                  written down all the same: then this replica leads
                                                 no longer, and leaves the ISR

The last is how a replica is given up that was in a directory which failed before the controller had
heard that it lay there.

Source: Kafka 4.2, ReplicationControlManager.java (handleAssignReplicasToDirs).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from broker.controller.active.isr_changes import Failed, check_broker_epoch
from broker.controller.active.partition_plan import PartitionPlan
from broker.controller.active.slices import Slices
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from protocol.error_codes import ErrorCode
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)


@dataclass(frozen=True, slots=True)
class PlannedReplica:
    """What is answered for one replica, if the plan is committed."""

    index: int
    error: ErrorCode = ErrorCode.NONE


PlannedTopic = tuple[UUID, TopicImage | None, list[PlannedReplica]]


def check_sender(image: ClusterImage, request: AssignReplicasToDirsRequest) -> None:
    """Refuse the word of a broker's earlier life.

    Raises:
        ApiError: BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH.
    """
    check_broker_epoch(image, request.broker_id, request.broker_epoch)


async def plan_assignments(
    plan: PartitionPlan, request: AssignReplicasToDirsRequest, slices: Slices
) -> list[tuple[UUID, list[PlannedTopic]]]:
    """Plan what a broker says; by directory and topic as the request has it.

    Raises:
        ApiError: See `check_sender`.
    """
    check_sender(plan.image, request)
    planned = []
    for directory in request.directories:
        topics: list[PlannedTopic] = []
        for data in directory.topics:
            topic = plan.image.topics_by_id.get(data.topic_id)
            replicas = []
            for wanted in data.partitions:
                index = wanted.partition_index
                replicas.append(_assign(plan, topic, index, request.broker_id, directory.id_))
                await slices.turn()
            topics.append((data.topic_id, topic, replicas))
        planned.append((directory.id_, topics))
    return planned


def _assign(
    plan: PartitionPlan, topic: TopicImage | None, index: int, node_id: int, directory_id: UUID
) -> PlannedReplica:
    if topic is None:
        return PlannedReplica(index, ErrorCode.UNKNOWN_TOPIC_ID)
    current = plan.partition(topic, index)
    if current is None:
        return PlannedReplica(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if node_id not in current.replicas:
        return PlannedReplica(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    placed = current.placed(node_id, directory_id)
    if placed != current:
        placed = replace(placed, partition_epoch=current.partition_epoch + 1)
        plan.change(topic, placed)
    return PlannedReplica(index)


def response_of(
    planned: list[tuple[UUID, list[PlannedTopic]]], failed: Failed
) -> AssignReplicasToDirsResponse:
    """The answer, once what was planned is committed, but where `failed` says not."""
    return AssignReplicasToDirsResponse(
        directories=[
            AssignReplicasToDirsResponseDirectoryData(
                id_=directory_id,
                topics=[
                    AssignReplicasToDirsResponseTopicData(
                        topic_id=topic_id, partitions=list(_answers(topic, replicas, failed))
                    )
                    for topic_id, topic, replicas in topics
                ],
            )
            for directory_id, topics in planned
        ]
    )


def _answers(
    topic: TopicImage | None, replicas: list[PlannedReplica], failed: Failed
) -> Iterator[AssignReplicasToDirsResponsePartitionData]:
    for replica in replicas:
        error = replica.error
        if topic is not None and error is ErrorCode.NONE:
            error = failed(topic, replica.index) or error
        yield AssignReplicasToDirsResponsePartitionData(
            partition_index=replica.index, error_code=int(error)
        )
