"""ISR changes that leaders ask for (AlterPartition), planned on top of each other.

    broker epoch is not the registered one          STALE_BROKER_EPOCH, the whole request
    topic id is unknown                             UNKNOWN_TOPIC_ID
    partition is unknown                            UNKNOWN_TOPIC_OR_PARTITION
    leader or partition epoch is ahead of ours      NOT_CONTROLLER: another controller has gone on
    leader epoch is behind                          FENCED_LEADER_EPOCH
    the sender is not the leader                    INVALID_REQUEST
    partition epoch is behind                       INVALID_UPDATE_VERSION
    ISR has strangers, twins, or not the leader     INVALID_REQUEST
    RECOVERING with more than one replica, or
    after RECOVERED                                 INVALID_REQUEST
    a member is not registered, fenced, draining,
    of another epoch (KIP-841, KIP-903), or its
    log directory does not work (KIP-858); or
    it joins, and its directory has no room         INELIGIBLE_REPLICA
    the change has made another broker the leader   NEW_LEADER_ELECTED, and it is made

Source: Kafka 4.2, ReplicationControlManager.java (alterPartition).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from broker.controller.active.partition_change import changed
from broker.controller.active.partition_plan import PartitionPlan
from broker.controller.active.slices import Slices
from broker.controller.active.topic_terms import TopicTerms
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.partition_image import PartitionImage
from broker.controller.images.replica_directories import replicas_full, replicas_offline
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    BrokerState,
)

ANY_EPOCH: Final = -1
"""Epoch of an ISR's member that its leader does not know: it is not compared (version 2)."""

Failed = Callable[[TopicImage, int], ErrorCode | None]
"""Says with which error a partition could not be committed; None: it is."""

RECOVERED: Final = 0
RECOVERING: Final = 1


def check_broker_epoch(image: ClusterImage, node_id: int, epoch: int) -> None:
    """Refuse the word of a broker's earlier life.

    Raises:
        ApiError: BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH.
    """
    broker = image.brokers.get(node_id)
    if broker is None:
        raise ApiError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"No broker registration found for broker id {node_id}",
        )
    if broker.epoch != epoch:
        raise ApiError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}",
        )


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One partition of a request: what was planned for it, or why nothing was."""

    index: int
    error: ErrorCode = ErrorCode.NONE
    partition: PartitionImage | None = None


class IsrChanges:
    """Plans requests, in order, into one `PartitionPlan`."""

    def __init__(self, plan: PartitionPlan, terms: TopicTerms) -> None:
        self._plan = plan
        self._image = plan.image
        self._terms = terms

    async def add(
        self, request: AlterPartitionRequest, version: int, slices: Slices
    ) -> list[tuple[TopicImage | None, list[PlannedPartition]]]:
        """Plan a request; per topic, in its order, what becomes of each partition.

        Raises:
            ApiError: The whole request is refused.
        """
        check_broker_epoch(self._image, request.broker_id, request.broker_epoch)
        planned: list[tuple[TopicImage | None, list[PlannedPartition]]] = []
        for data in request.topics:
            topic = self._image.topics_by_id.get(data.topic_id)
            if topic is None:
                refused = [
                    PlannedPartition(wanted.partition_index, ErrorCode.UNKNOWN_TOPIC_ID)
                    for wanted in data.partitions
                ]
                planned.append((None, refused))
                continue
            one = []
            for wanted in data.partitions:
                one.append(self._add(topic, wanted, request.broker_id, version))
                await slices.turn()
            planned.append((topic, one))
        return planned

    def _add(
        self,
        topic: TopicImage,
        wanted: AlterPartitionRequestPartitionData,
        node_id: int,
        version: int,
    ) -> PlannedPartition:
        index = wanted.partition_index
        current = self._plan.partition(topic, index)
        if current is None:
            return PlannedPartition(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        members = (
            wanted.new_isr_with_epochs
            if version >= 3
            else [BrokerState(broker_id=node) for node in wanted.new_isr]
        )
        error = self._refusal(current, wanted, members, node_id)
        if error is not ErrorCode.NONE:
            return PlannedPartition(index, error)
        new = changed(
            current,
            self._terms.of(topic, current),
            isr=[member.broker_id for member in members],
            is_recovering=wanted.leader_recovery_state == RECOVERING,
        )
        self._plan.change(topic, new)
        if new.leader != node_id:
            return PlannedPartition(index, ErrorCode.NEW_LEADER_ELECTED)
        return PlannedPartition(index, partition=new)

    def _refusal(
        self,
        current: PartitionImage,
        wanted: AlterPartitionRequestPartitionData,
        members: list[BrokerState],
        node_id: int,
    ) -> ErrorCode:
        if (
            wanted.leader_epoch > current.leader_epoch
            or wanted.partition_epoch > current.partition_epoch
        ):
            return ErrorCode.NOT_CONTROLLER
        if wanted.leader_epoch < current.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if node_id != current.leader:
            return ErrorCode.INVALID_REQUEST
        if wanted.partition_epoch < current.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        nodes = [member.broker_id for member in members]
        if len(set(nodes)) != len(nodes) or not set(nodes) <= set(current.replicas):
            return ErrorCode.INVALID_REQUEST
        if current.leader not in nodes:
            return ErrorCode.INVALID_REQUEST
        is_recovering = wanted.leader_recovery_state == RECOVERING
        if wanted.leader_recovery_state not in (RECOVERED, RECOVERING):
            return ErrorCode.INVALID_REQUEST
        if is_recovering and (len(nodes) > 1 or not current.is_recovering):
            return ErrorCode.INVALID_REQUEST
        if not all(map(self._is_eligible, members)):
            return ErrorCode.INELIGIBLE_REPLICA
        if not replicas_offline(self._image, current).isdisjoint(nodes):
            return ErrorCode.INELIGIBLE_REPLICA
        joining = set(nodes).difference(current.isr)
        if not replicas_full(self._image, current).isdisjoint(joining):
            return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE

    def _is_eligible(self, member: BrokerState) -> bool:
        broker = self._image.brokers.get(member.broker_id)
        return (
            broker is not None
            and not broker.is_fenced
            and not broker.is_draining
            and member.broker_epoch in (ANY_EPOCH, broker.epoch)
        )


def response_of(
    request: AlterPartitionRequest,
    planned: list[tuple[TopicImage | None, list[PlannedPartition]]],
    failed: Failed,
) -> AlterPartitionResponse:
    """The answer, once what was planned is committed, but where `failed` says not."""
    return AlterPartitionResponse(
        topics=[
            AlterPartitionResponseTopicData(
                topic_id=data.topic_id, partitions=list(_answers(topic, partitions, failed))
            )
            for data, (topic, partitions) in zip(request.topics, planned, strict=True)
        ]
    )


def _answers(
    topic: TopicImage | None, partitions: list[PlannedPartition], failed: Failed
) -> Iterator[AlterPartitionResponsePartitionData]:
    for planned in partitions:
        error = planned.error
        new = planned.partition
        if topic is not None and error in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED):
            error = failed(topic, planned.index) or error
        if error is not ErrorCode.NONE or new is None:
            yield AlterPartitionResponsePartitionData(
                partition_index=planned.index, error_code=int(error)
            )
            continue
        yield AlterPartitionResponsePartitionData(
            partition_index=planned.index,
            leader_id=new.leader,
            leader_epoch=new.leader_epoch,
            isr=list(new.isr),
            leader_recovery_state=RECOVERING if new.is_recovering else RECOVERED,
            partition_epoch=new.partition_epoch,
        )
