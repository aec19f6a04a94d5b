"""From a request for topics to what has to be committed for it; changes nothing by itself."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from broker.controller.configs.configs import ConfigRules
from broker.controller.images.cluster_image import (
    ClusterImage,
    ConfigResource,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from broker.controller.images.metadata_records import (
    PARTITIONS_PER_CHUNK,
    chunks,
    config_key,
    encode_config,
    encode_topic,
    partitions_key,
    topic_key,
)
from broker.controller.images.replica_directories import with_replicas
from broker.controller.images.results import CreateTopicResult, Result
from broker.controller.images.topic_names import INTERNAL_TOPICS, collision_key, may_collide
from broker.controller.store.metadata_store import Put, key_absent, key_present
from broker.controller.store.store_writer import Unit
from broker.controller.topics.tiered_topics import check_metadata_stays
from broker.controller.topics.topics import (
    NewPartitions,
    NewTopic,
    added_partitions,
    check_new_name,
    check_request_size,
    new_partitions_of,
    requested_configs,
)
from broker.runtime.errors import ApiError
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from storage.environment.randomness import Randomness
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import format_uuid

RESERVED_IDS: Final = frozenset({UUID(int=0), UUID(int=1)})
"""Topic ids Kafka keeps for itself: none, and its metadata log."""


Choice = Callable[[TopicPartition], UUID | None]
"""Gives the log directory of this node's new replica; None: none is known."""


def _nowhere(_topic_partition: TopicPartition) -> UUID | None:
    return None


def _no_choice() -> Choice:
    return _nowhere


class TopicPlanner:
    """Plans on the image it is given.

    Attributes:
        placement: Gives a choice of log directories for the new partitions of one plan.
    """

    def __init__(self, settings: BrokerConfig, rules: ConfigRules, randomness: Randomness) -> None:
        self.placement: Callable[[], Choice] = _no_choice
        self._settings = settings
        self._rules = rules
        self._randomness = randomness

    def plan_topics(
        self, image: ClusterImage, topics: Sequence[NewTopic]
    ) -> list[tuple[CreateTopicResult, Unit | None]]:
        """For each topic what it would be and what to commit for it, or why not."""
        collisions = {collision_key(n): n for n in image.topics if may_collide(n)}
        taken: set[UUID] = set()
        choose = self.placement()
        try:
            check_request_size(topics, self._settings)
        except ApiError as error:
            return [
                (CreateTopicResult(topic.name, error.code, error.message), None) for topic in topics
            ]
        planned: list[tuple[CreateTopicResult, Unit | None]] = []
        for topic in topics:
            try:
                new, unit = self._plan_topic(topic, image, collisions, taken, choose)
            except ApiError as error:
                planned.append((CreateTopicResult(topic.name, error.code, error.message), None))
                continue
            taken.add(new.topic_id)
            if may_collide(new.name):
                collisions[collision_key(new.name)] = new.name
            planned.append((CreateTopicResult(topic.name, topic=new), unit))
        return planned

    def _plan_topic(
        self,
        topic: NewTopic,
        image: ClusterImage,
        collisions: Mapping[str, str],
        taken: Collection[UUID],
        choose: Choice,
    ) -> tuple[TopicImage, Unit]:
        check_new_name(topic.name, image, collisions)
        overrides = requested_configs(topic)
        resource = ConfigResource(ResourceType.TOPIC, topic.name)
        self._rules.check(resource, overrides, {}, image)
        partitions = self._placed(
            topic.name,
            new_partitions_of(topic, image, self._settings, self._randomness),
            choose,
            image,
        )
        topic_id = fresh_id(self._randomness)
        while topic_id in image.topics_by_id or topic_id in taken:
            topic_id = fresh_id(self._randomness)
        puts = [Put(topic_key(topic.name), encode_topic(topic_id))]
        puts += [Put(key, value) for key, value in chunks(topic_id, partitions)]
        if overrides:
            puts.append(Put(config_key(resource), encode_config(overrides)))
        new = TopicImage(
            topic.name, topic_id, tuple(partitions), overrides, topic.name in INTERNAL_TOPICS
        )
        return new, Unit(compare=(key_absent(topic_key(topic.name)),), operations=tuple(puts))

    def _placed(
        self,
        topic: str,
        partitions: Iterable[PartitionImage],
        choose: Choice,
        image: ClusterImage,
    ) -> list[PartitionImage]:
        """New partitions with the log directories of their replicas, as far as they are known."""
        me = self._settings.node_id
        placed = []
        for new in partitions:
            partition = with_replicas(image, new, new.replicas) if _is_shared(image) else new
            one = TopicPartition(topic, partition.index)
            directory_id = choose(one) if me in partition.replicas else None
            placed.append(partition if directory_id is None else partition.placed(me, directory_id))
        return placed

    def plan_extension(
        self, image: ClusterImage, request: NewPartitions, choose: Choice = _nowhere
    ) -> tuple[Result, Unit | None]:
        """What to commit for more partitions of a topic, or why not."""
        topic = image.topics.get(request.name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return Result(code, code.message), None
        try:
            check_metadata_stays(image, request.name, "get more partitions")
            added = added_partitions(request, topic, image, self._randomness)
        except ApiError as error:
            return Result(error.code, error.message), None
        placed = self._placed(topic.name, added, choose, image)
        partitions: list[PartitionImage] = [*topic.partitions, *placed]
        puts = chunks(topic.topic_id, partitions, from_index=len(topic.partitions))
        unit = Unit(
            compare=(key_present(topic_key(topic.name)),),
            operations=tuple(Put(key, value) for key, value in puts),
        )
        return Result(), unit

    def plan_new_epochs(self, image: ClusterImage, topic_id: UUID, lost: Collection[int]) -> Unit:
        """What to commit so that some partitions of a topic begin another leader epoch."""
        topic = image.topics_by_id[topic_id]
        partitions = [
            in_new_epoch(partition) if partition.index in lost else partition
            for partition in topic.partitions
        ]
        return changed_partitions(topic, partitions, lost)

    def plan_places(self, image: ClusterImage, topic_id: UUID, places: Mapping[int, UUID]) -> Unit:
        """What to commit so that some partitions of a topic lie in other log directories here.

        Every record that changes is of the next partition epoch: what else changes it must not be
        planned on the one before.
        """
        topic = image.topics_by_id[topic_id]
        partitions = list(topic.partitions)
        changed = []
        for index, directory_id in places.items():
            if not 0 <= index < len(partitions):
                continue
            before = topic.partitions[index]
            after = before.placed(self._settings.node_id, directory_id)
            if after != before:
                partitions[index] = replace(after, partition_epoch=before.partition_epoch + 1)
                changed.append(index)
        return changed_partitions(topic, partitions, changed)


def _is_shared(image: ClusterImage) -> bool:
    """Whether brokers have registered, each with its log directories."""
    return any(broker.registration is not None for broker in image.brokers.values())


def in_new_epoch(partition: PartitionImage) -> PartitionImage:
    """The partition in a new leader epoch: clients that know the old log notice it."""
    return replace(
        partition,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )


def changed_partitions(
    topic: TopicImage, partitions: Sequence[PartitionImage], changed: Iterable[int]
) -> Unit:
    """What to commit for some changed partitions of a topic: the chunks that hold them."""
    firsts = {index - index % PARTITIONS_PER_CHUNK for index in changed}
    keys = {partitions_key(topic.topic_id, first) for first in firsts}
    puts = [pair for pair in chunks(topic.topic_id, partitions) if pair[0] in keys]
    return Unit(
        compare=(key_present(topic_key(topic.name)),),
        operations=tuple(Put(key, value) for key, value in puts),
    )


def fresh_id(randomness: Randomness) -> UUID:
    """A random id that is not reserved and whose text is not taken for a command line option."""
    while True:
        drawn = randomness.uuid4()
        if drawn not in RESERVED_IDS and not format_uuid(drawn).startswith("-"):
            return drawn
