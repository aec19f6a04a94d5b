"""From a request for topics to what has to be committed for it; changes nothing by itself."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from broker.controller.cluster_image import (
    ClusterImage,
    ConfigResource,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from broker.controller.configs import ConfigRules
from broker.controller.metadata_records import (
    chunks,
    config_key,
    encode_config,
    encode_topic,
    topic_key,
)
from broker.controller.metadata_store import Put, key_absent, key_present
from broker.controller.results import CreateTopicResult, Result
from broker.controller.store_writer import Unit
from broker.controller.topic_names import INTERNAL_TOPICS, collision_key, may_collide
from broker.controller.topics import (
    NewPartitions,
    NewTopic,
    added_partitions,
    check_new_name,
    check_request_size,
    new_partitions_of,
    requested_configs,
)
from broker.errors import ApiError
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from storage.randomness import Randomness
from storage.uuid_text import format_uuid

RESERVED_IDS: Final = frozenset({UUID(int=0), UUID(int=1)})
"""Topic ids Kafka keeps for itself: none, and its metadata log."""


class TopicPlanner:
    """Plans on the image it is given."""

    def __init__(self, settings: BrokerConfig, rules: ConfigRules, randomness: Randomness) -> None:
        self._settings = settings
        self._rules = rules
        self._randomness = randomness

    def plan_topics(
        self, image: ClusterImage, topics: Sequence[NewTopic]
    ) -> list[tuple[CreateTopicResult, Unit | None]]:
        """For each topic what it would be and what to commit for it, or why not."""
        collisions = {collision_key(n): n for n in image.topics if may_collide(n)}
        taken: set[UUID] = set()
        try:
            check_request_size(topics, self._settings)
        except ApiError as error:
            return [
                (CreateTopicResult(topic.name, error.code, error.message), None) for topic in topics
            ]
        planned: list[tuple[CreateTopicResult, Unit | None]] = []
        for topic in topics:
            try:
                new, unit = self._plan_topic(topic, image, collisions, taken)
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
    ) -> tuple[TopicImage, Unit]:
        check_new_name(topic.name, image, collisions)
        overrides = requested_configs(topic)
        resource = ConfigResource(ResourceType.TOPIC, topic.name)
        self._rules.check(resource, overrides, {}, image)
        partitions = new_partitions_of(
            topic, image, self._settings, self._randomness.below(len(image.brokers))
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

    def plan_extension(
        self, image: ClusterImage, request: NewPartitions
    ) -> tuple[Result, Unit | None]:
        """What to commit for more partitions of a topic, or why not."""
        topic = image.topics.get(request.name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return Result(code, code.message), None
        try:
            added = added_partitions(
                request, topic, image, self._randomness.below(len(image.brokers))
            )
        except ApiError as error:
            return Result(error.code, error.message), None
        partitions: list[PartitionImage] = [*topic.partitions, *added]
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
            replace(
                partition,
                leader_epoch=partition.leader_epoch + 1,
                partition_epoch=partition.partition_epoch + 1,
            )
            if partition.index in lost
            else partition
            for partition in topic.partitions
        ]
        puts = chunks(topic_id, partitions, from_index=min(lost))
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
