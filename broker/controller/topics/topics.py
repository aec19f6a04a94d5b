"""Validation and placement of new topics: names, counts, replicas of each partition.

Only decides; `broker.controller.controller` writes. Every refusal is an `ApiError` with Kafka's
code and sentence.

Source: Kafka 4.2, ReplicationControlManager.java, StripedReplicaPlacer.java.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.controller.images import topic_names
from broker.controller.images.cluster_image import ClusterImage, PartitionImage, TopicImage
from broker.controller.images.topic_names import (
    CLUSTER_METADATA,
    collision_key,
    may_collide,
    name_problem,
)
from broker.controller.topics.placement import Placer, takes_part
from broker.runtime.errors import ApiError
from config.broker import BrokerConfig
from config.kinds import LONG_MAX
from protocol.error_codes import ErrorCode
from storage.environment.randomness import Randomness

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
"""Partitions one request may create, as in Kafka; it also keeps a topic inside one transaction."""

REMOTE_LOG_METADATA_CONFIGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "remote.storage.enable": "false",
    # Kafka leaves these two to the broker's defaults. Here a published event is on disk, since
    # local segments are deleted on the strength of it; and none is dropped for want of space.
    "flush.messages": "1",
    "retention.bytes": "-1",
    # Brokers write to each other's partitions: a clock that is wrong must not end that.
    "message.timestamp.after.max.ms": str(LONG_MAX),
    "message.timestamp.before.max.ms": str(LONG_MAX),
}
"""The own settings of `__remote_log_metadata`."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """One topic to create.

    Attributes:
        num_partitions: -1 for `num.partitions`, or with `assignments`.
        replication_factor: -1 for `default.replication.factor`, or with `assignments`.
        assignments: Partition index and its replicas, leader first; empty lets us choose.
        configs: Settings of the topic; a None is refused.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """A topic to extend to `count` partitions; `assignments` holds the replicas of the new ones."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


def check_request_size(topics: Iterable[NewTopic], settings: BrokerConfig) -> None:
    """Refuse a request for too many partitions.

    Raises:
        ApiError: POLICY_VIOLATION; Kafka gives it to every topic of the request.
    """
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == -1:
            total += settings.num_partitions
        else:
            total += max(topic.num_partitions, 0)
    if total > PARTITIONS_PER_REQUEST_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def check_new_name(name: str, image: ClusterImage, collisions: Mapping[str, str]) -> None:
    """Refuse a name no topic may have, or one that is taken.

    Args:
        name: The new topic's.
        image: The topics there are.
        collisions: `collision_key` of every name that may collide, to that name.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, or INVALID_REQUEST for the name of
            Kafka's own metadata log.
    """
    if name == CLUSTER_METADATA:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."
        )
    if name in image.topics:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    problem = name_problem(name)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if may_collide(name):
        other = collisions.get(collision_key(name))
        if other is not None:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )


def requested_configs(topic: NewTopic) -> dict[str, str]:
    """The topic's settings; of a key given twice the last counts.

    Raises:
        ApiError: INVALID_CONFIG when a value is missing.
    """
    missing = [name for name, value in topic.configs if value is None]
    if missing:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(missing)}",
        )
    return {name: value for name, value in topic.configs if value is not None}


def new_partitions_of(
    topic: NewTopic, image: ClusterImage, settings: BrokerConfig, randomness: Randomness
) -> list[PartitionImage]:
    """The partitions of a new topic.

    Args:
        topic: What was asked for.
        image: The brokers there are.
        settings: The defaults.
        randomness: For where placement begins.

    Raises:
        ApiError: INVALID_REQUEST, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR or
            INVALID_PARTITIONS.
    """
    if topic.assignments:
        return _assigned(topic, image)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    count = settings.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = (
        settings.default_replication_factor
        if topic.replication_factor == -1
        else topic.replication_factor
    )
    return place(range(count), factor, image, randomness)


def _assigned(topic: NewTopic, image: ClusterImage) -> list[PartitionImage]:
    if topic.replication_factor != -1:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set "
            "to -1.",
        )
    if topic.num_partitions != -1:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    by_index: dict[int, PartitionImage] = {}
    factor: int | None = None
    for index, replicas in topic.assignments:
        if index in by_index:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        by_index[index] = assigned_partition(index, replicas, factor, image)
        factor = len(replicas)
    if set(by_index) != set(range(len(by_index))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [by_index[index] for index in range(len(by_index))]


def assigned_partition(
    index: int, replicas: Sequence[int], factor: int | None, image: ClusterImage
) -> PartitionImage:
    """A partition whose replicas the client has chosen.

    Args:
        index: The partition's.
        replicas: Node ids, the preferred leader first.
        factor: How many there have to be; None for any number.
        image: The brokers there are.

    Raises:
        ApiError: INVALID_REPLICA_ASSIGNMENT.
    """
    check_assignment(replicas, factor, image)
    isr = tuple(node for node in replicas if takes_part(image.brokers[node]))
    if not isr:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for "
            f"partition {index} are fenced or in controlled shutdown.",
        )
    return PartitionImage(index, isr[0], 0, 0, tuple(replicas), isr)


def check_assignment(replicas: Sequence[int], factor: int | None, image: ClusterImage) -> None:
    """Refuse a list of replicas that cannot be.

    Raises:
        ApiError: INVALID_REPLICA_ASSIGNMENT: it is empty, names a broker twice or one that is not
            registered, or has another number of them than `factor`, if that is not None.
    """
    problem = _assignment_problem(replicas, factor, image)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def _assignment_problem(
    replicas: Sequence[int], factor: int | None, image: ClusterImage
) -> str | None:
    if not replicas:
        return "The manual partition assignment includes an empty replica list."
    previous: int | None = None
    for node in sorted(replicas):
        if node not in image.brokers:
            return (
                f"The manual partition assignment includes broker {node}, "
                "but no such broker is registered."
            )
        if node == previous:
            return f"The manual partition assignment includes the broker {node} more than once."
        previous = node
    if factor is not None and len(replicas) != factor:
        return (
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{factor} replica(s)."
        )
    return None


def place(
    indexes: Iterable[int], factor: int, image: ClusterImage, randomness: Randomness
) -> list[PartitionImage]:
    """Spread partitions over the brokers (`broker.controller.topics.placement`).

    Replicas on brokers that are fenced or want to stop are not in the ISR.

    Raises:
        ApiError: INVALID_REPLICATION_FACTOR when there are too few brokers.
    """
    placer = Placer(image.brokers, randomness)
    partitions = []
    for index in indexes:
        replicas = placer.place(factor)
        isr = tuple(node for node in replicas if takes_part(image.brokers[node]))
        partitions.append(PartitionImage(index, isr[0], 0, 0, replicas, isr))
    return partitions


def added_partitions(
    request: NewPartitions, topic: TopicImage, image: ClusterImage, randomness: Randomness
) -> list[PartitionImage]:
    """The partitions that are new when a topic is extended.

    Raises:
        ApiError: INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, or
            POLICY_VIOLATION for too many at once.
    """
    present = len(topic.partitions)
    if request.count == present:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if request.count < present:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {request.count} "
            "would not be an increase.",
        )
    additional = request.count - present
    if request.assignments is not None and len(request.assignments) != additional:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(request.assignments)} assignment(s) were specified.",
        )
    if additional > PARTITIONS_PER_REQUEST_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )
    factor = topic.replication_factor
    if request.assignments is None:
        return place(range(present, request.count), factor, image, randomness)
    return [
        assigned_partition(index, replicas, factor, image)
        for index, replicas in enumerate(request.assignments, present)
    ]


def automatic_topic(
    name: str, image: ClusterImage, settings: BrokerConfig, *, lowers_replication: bool = True
) -> NewTopic:
    """The topic made for a client that asked for one that does not exist, or for ourselves.

    Internal topics get their own settings. On a single node their replication factor is lowered to
    one: Kafka refuses instead, which leaves a node with default settings (3) without consumer
    groups. A cluster's is not, or the first client would decide it for ever: until there are
    enough brokers the topic cannot be created.
    """
    match name:
        case topic_names.CONSUMER_OFFSETS:
            count = settings.offsets_topic_num_partitions
            factor = settings.offsets_topic_replication_factor
            configs = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            }
        case topic_names.TRANSACTION_STATE:
            count = settings.transaction_state_log_num_partitions
            factor = settings.transaction_state_log_replication_factor
            configs = {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(settings.transaction_state_log_min_isr),
                "segment.bytes": str(settings.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            }
        case topic_names.SHARE_GROUP_STATE:
            count = settings.share_coordinator_state_topic_num_partitions
            factor = settings.share_coordinator_state_topic_replication_factor
            configs = {
                # Not compacted: an update says only what is new, and all of them count.
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(settings.share_coordinator_state_topic_min_isr),
                "retention.ms": "-1",
                "segment.bytes": str(settings.share_coordinator_state_topic_segment_bytes),
            }
        case topic_names.REMOTE_LOG_METADATA:
            count = settings.rlmm_config_remote_log_metadata_topic_num_partitions
            factor = settings.rlmm_config_remote_log_metadata_topic_replication_factor
            configs = dict(REMOTE_LOG_METADATA_CONFIGS)
        case _:
            return NewTopic(name)
    if not lowers_replication:
        return NewTopic(name, count, factor, (), tuple(configs.items()))
    brokers = max(len(image.brokers), 1)
    factor = min(factor, brokers)
    if "min.insync.replicas" in configs:
        configs["min.insync.replicas"] = str(min(int(configs["min.insync.replicas"]), factor))
    return NewTopic(name, count, factor, (), tuple(configs.items()))
