"""Changes of topics: planned on the image, committed with one result for each topic.

    create, extend      a plan of each topic ──one commit──> results, and refusals where they stood
    delete              the topic, its partitions and settings; a note where remote storage has some
    begin_epochs, assign_directories      partitions of topics that are there

Each runs as one change of `broker.controller.changes`: its caller puts it into the queue.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

from broker.controller.changes import Changes
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.metadata_records import (
    ConfigResource,
    ResourceType,
    config_key,
    deleted_topic_key,
    partitions_prefix,
    topic_key,
)
from broker.controller.images.results import CreateTopicResult, Result, result_of
from broker.controller.store.metadata_store import Delete, Put, key_present
from broker.controller.store.store_writer import Unit
from broker.controller.topic_planner import TopicPlanner
from broker.controller.topics.tiered_topics import check_metadata_stays
from broker.controller.topics.topics import NewPartitions, NewTopic
from broker.runtime.errors import ApiError
from config.topic import has_remote_history
from protocol.error_codes import ErrorCode

NO_ROOM: Final = "no log directory has room"


class TopicChanges:
    """See the module. Runs on the loop's thread.

    Attributes:
        has_room: Whether a log that is made now finds a directory; asked before a commit.
        may_be_remote: Whether a topic may have something in remote storage, whatever its settings
            say.
    """

    def __init__(
        self, changes: Changes, planner: TopicPlanner, *, image: Callable[[], ClusterImage]
    ) -> None:
        """Change nothing yet.

        Args:
            changes: What is planned is committed through it.
            planner: Of topics and partitions.
            image: The newest.
        """
        self._changes = changes
        self._planner = planner
        self._image = image
        self.has_room: Callable[[], bool] = lambda: True
        self.may_be_remote: Callable[[TopicImage], bool] = lambda _topic: False

    async def create(self, topics: Sequence[NewTopic]) -> list[CreateTopicResult]:
        """Create topics; one result per topic, in order."""
        if not self.has_room():
            return [
                result
                if unit is None
                else CreateTopicResult(result.name, ErrorCode.KAFKA_STORAGE_ERROR, NO_ROOM)
                for result, unit in self._planner.plan_topics(self._image(), topics)
            ]
        planned = self._planner.plan_topics(self._image(), topics)
        units = [unit for _, unit in planned if unit is not None]
        outcomes = iter(await self._changes.commit(units))
        results = []
        for result, unit in planned:
            error = next(outcomes) if unit is not None else None
            if error is None:
                results.append(result)
            else:
                failed = result_of(error)
                results.append(CreateTopicResult(result.name, failed.error, failed.message))
        return results

    async def delete(self, topic_ids: Sequence[UUID]) -> dict[UUID, Result]:
        """Delete topics; what another has done already is UNKNOWN_TOPIC_ID."""
        image = self._image()
        results: dict[UUID, Result] = {}
        units: dict[UUID, Unit] = {}
        for topic_id in topic_ids:
            topic = image.topics_by_id.get(topic_id)
            if topic is None:
                results[topic_id] = Result(
                    ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message
                )
                continue
            try:
                check_metadata_stays(image, topic.name, "be deleted")
            except ApiError as refusal:
                results[topic_id] = Result(refusal.code, refusal.message)
                continue
            resource = ConfigResource(ResourceType.TOPIC, topic.name)
            tombstone: tuple[Put, ...] = ()
            if has_remote_history(topic.overrides) or self.may_be_remote(topic):
                # A crash may come before the deletion is in the remote log's metadata. And what the
                # topic has there the metadata knows, not its settings as they are now.
                tombstone = (Put(deleted_topic_key(topic_id), topic.name.encode()),)
            units[topic_id] = Unit(
                compare=(key_present(topic_key(topic.name)),),
                operations=(
                    Delete(topic_key(topic.name)),
                    Delete(partitions_prefix(topic_id), prefix=True),
                    Delete(config_key(resource)),
                    *tombstone,
                ),
            )
        outcomes = await self._changes.commit(list(units.values()))
        for topic_id, error in zip(units, outcomes, strict=True):
            results[topic_id] = result_of(error)
        return results

    async def forget_deleted(self, topic_ids: Sequence[UUID]) -> None:
        """Drop the notes of deleted topics of which remote storage has nothing left."""
        await self._changes.commit(
            [
                Unit(compare=(), operations=(Delete(deleted_topic_key(topic_id)),))
                for topic_id in topic_ids
            ]
        )

    async def extend(self, requests: Sequence[NewPartitions]) -> list[Result]:
        """Add partitions to topics; one result per request, in order."""
        choose = self._planner.placement()
        planned = [
            self._planner.plan_extension(self._image(), request, choose) for request in requests
        ]
        if not self.has_room():
            return [
                result if unit is None else Result(ErrorCode.KAFKA_STORAGE_ERROR, NO_ROOM)
                for result, unit in planned
            ]
        outcomes = iter(
            await self._changes.commit([unit for _, unit in planned if unit is not None])
        )
        return [result if unit is None else result_of(next(outcomes)) for result, unit in planned]

    async def begin_epochs(self, lost: Mapping[UUID, Collection[int]]) -> set[UUID]:
        """Raise leader epochs; the topics for which this is committed."""
        image = self._image()
        there = [topic_id for topic_id in lost if topic_id in image.topics_by_id]
        errors = await self._changes.commit(
            [self._planner.plan_new_epochs(image, topic_id, lost[topic_id]) for topic_id in there]
        )
        return {topic_id for topic_id, error in zip(there, errors, strict=True) if error is None}

    async def assign_directories(self, places: Mapping[UUID, Mapping[int, UUID]]) -> set[UUID]:
        """Write down where replicas lie; the topics for which this is committed."""
        image = self._image()
        there = [topic_id for topic_id in places if topic_id in image.topics_by_id]
        errors = await self._changes.commit(
            [self._planner.plan_places(image, topic_id, places[topic_id]) for topic_id in there]
        )
        return {topic_id for topic_id, error in zip(there, errors, strict=True) if error is None}
