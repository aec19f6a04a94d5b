"""Reassignments: partitions that are to have other replicas (KIP-455), planned on their records.

    [1 2 3] ──to [2 4]──> replicas [2 4 1 3], adding [4], removing [1 3]
                            │ 4 has joined the ISR               │ cancelled
                            v                                    v
                          [2 4]                                [2 1 3]

The replicas that are added follow the leader beside those of before. An ISR change, or anything
else that changes the record, completes it (`broker.controller.active.partition_change`).

A later reassignment may come over one under way. `adding` is always what was not there before the
first of them, so that cancelling goes back to what was there then; Kafka forgets the replicas that
an earlier one had begun to add, and keeps them after a cancel. Where a later one asks for all the
replicas there are, nothing is removed any more; Kafka goes on with the earlier one.

    no such topic, no such partition            UNKNOWN_TOPIC_OR_PARTITION
    none, twice the same, an unknown broker     INVALID_REPLICA_ASSIGNMENT
    another number of them, if that may not be  INVALID_REPLICATION_FACTOR   (KIP-860)
    cancel, and there is none                   NO_REASSIGNMENT_IN_PROGRESS
    cancel, and no replica of before could lead INVALID_REPLICA_ASSIGNMENT
    records of the store must not have it yet   UNSUPPORTED_VERSION

Source: Kafka 4.2, ReplicationControlManager.java (alterPartitionReassignments),
PartitionReassignmentReplicas.java, PartitionReassignmentRevert.java; KAFKA-14424.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from broker.controller.active.partition_change import Election, Terms, changed
from broker.controller.active.partition_plan import PartitionPlan
from broker.controller.active.topic_terms import TopicTerms
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.features import VARVE_VERSION, RecordLevel, writes
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.images.replica_directories import with_replicas
from broker.controller.topics.topics import check_assignment
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode


class ReassignmentRequest(NamedTuple):
    """A partition that is to have other replicas; None: those of before, a cancel."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


class ReassignmentResult(NamedTuple):
    """What came of it."""

    request: ReassignmentRequest
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def reassigning(image: ClusterImage) -> Iterator[tuple[TopicImage, PartitionImage]]:
    """Partitions whose reassignment is under way."""
    for topic in image.topics.values():
        for partition in topic.partitions:
            if partition.is_reassigning:
                yield topic, partition


def plan_reassignment(
    plan: PartitionPlan, terms: TopicTerms, request: ReassignmentRequest, *, may_resize: bool = True
) -> ReassignmentResult:
    """Plan one; nothing is planned where the partition is on its way there already.

    Args:
        plan: Of the records.
        terms: Of elections.
        request: What is asked for.
        may_resize: The number of replicas may become another.
    """
    try:
        topic, current = _find(plan, request)
        if request.replicas is None:
            new = _cancelled(topic, current, terms.of(topic, current))
        else:
            check_assignment(request.replicas, None, plan.image)
            if not may_resize and len(request.replicas) != len(current.target):
                raise ApiError(
                    ErrorCode.INVALID_REPLICATION_FACTOR,
                    f"The replication factor is changed from {len(current.target)} to "
                    f"{len(request.replicas)}",
                )
            assigned = _assigned(plan.image, current, request.replicas)
            if assigned.is_reassigning:
                _check_level(plan.image)
            new = changed(current, terms.of(topic, current), assigned=assigned)
    except ApiError as refusal:
        return ReassignmentResult(request, refusal.code, refusal.message)
    plan.change(topic, new)
    return ReassignmentResult(request)


def _find(plan: PartitionPlan, request: ReassignmentRequest) -> tuple[TopicImage, PartitionImage]:
    topic = plan.image.topics.get(request.topic)
    if topic is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {request.topic}."
        )
    current = plan.partition(topic, request.partition)
    if current is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {request.topic}:{request.partition}.",
        )
    return topic, current


def _assigned(
    image: ClusterImage, current: PartitionImage, target: Sequence[int]
) -> PartitionImage:
    """The partition on its way to `target`: all replicas, which are added, which removed."""
    removing = tuple(sorted(node for node in current.replicas if node not in target))
    replicas = (*target, *removing)
    original = current.original
    adding = tuple(sorted(node for node in replicas if node not in original))
    if (replicas, adding, removing) == (current.replicas, current.adding, current.removing):
        return current
    return replace(
        with_replicas(image, current, replicas),
        adding=adding,
        removing=removing,
    )


def _cancelled(topic: TopicImage, current: PartitionImage, terms: Terms) -> PartitionImage:
    """The partition with the replicas of before.

    Raises:
        ApiError: See the module.
    """
    if not current.is_reassigning:
        code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        raise ApiError(code, code.message)
    original = current.original
    new = changed(current, terms, assigned=current.keeping(original))
    has_records = any(node in original for node in (*current.isr, *current.elr))
    if not has_records and terms.election is not Election.UNCLEAN:
        why = "it would require an unclean leader election."
    elif new.leader == NO_LEADER != current.leader:
        why = "none of the replicas of before could lead now."
    else:
        return new
    raise ApiError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"Unable to revert partition assignment for {topic.name}:{current.index} because {why}",
    )


def _check_level(image: ClusterImage) -> None:
    """Refuse what a broker of an older release would take out of the record again."""
    if not writes(image.features, RecordLevel.MOVES):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Reassignments need {VARVE_VERSION} {int(RecordLevel.MOVES)}; once all brokers are of "
            f"this release: varve features upgrade {VARVE_VERSION}={int(RecordLevel.MOVES)}",
        )
