"""Automatic topic creation: for a client that uses a topic, or a coordinator's internal topic.

create(name) ──> queue ──> one request for all of this loop iteration ──> futures
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final

from broker.controller.images import topic_names
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.results import CreateTopicResult
from broker.controller.images.topic_names import name_problem
from broker.controller.topics.topics import PARTITIONS_PER_REQUEST_MAX, NewTopic, automatic_topic
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode

LOGGER = logging.getLogger(__name__)

AUTO_CREATIONS_MAX: Final = 10_000
"""Topics that may be on their way to be created without being asked for; more are left alone."""

FACTOR_SETTINGS: Final = {
    topic_names.CONSUMER_OFFSETS: "offsets.topic.replication.factor",
    topic_names.TRANSACTION_STATE: "transaction.state.log.replication.factor",
    topic_names.SHARE_GROUP_STATE: "share.coordinator.state.topic.replication.factor",
    topic_names.REMOTE_LOG_METADATA: "rlmm.config.remote.log.metadata.topic.replication.factor",
}
"""What decides how many replicas an internal topic gets."""


class AutoCreation:
    """Creations on their way, at most one per topic."""

    def __init__(
        self,
        settings: BrokerConfig,
        *,
        image: Callable[[], ClusterImage],
        create: Callable[[Sequence[NewTopic]], Awaitable[list[CreateTopicResult]]],
        start: Callable[[Coroutine[Any, Any, None]], object],
        lowers_replication: bool = True,
    ) -> None:
        """Create nothing yet.

        Args:
            settings: Of this broker.
            image: The newest.
            create: Creates topics, here or at the controller.
            start: Runs a coroutine.
            lowers_replication: Internal topics get no more replicas than there are brokers: for a
                single node, to which none will be added.
        """
        self._settings = settings
        self._image = image
        self._create = create
        self._start = start
        self._lowers_replication = lowers_replication
        self._running: dict[str, asyncio.Future[CreateTopicResult]] = {}
        self._queue: list[str] = []

    def is_creating(self, name: str) -> bool:
        """Whether a topic is on its way: it may be in the image, and its logs not there yet."""
        return name in self._running

    def create(self, name: str) -> "asyncio.Future[CreateTopicResult] | None":
        """Create a topic with default settings because a client uses it.

        Several requests for the same topic share one creation. An internal topic gets its own
        settings. The future's result may be an error (INVALID_TOPIC_EXCEPTION ...); it never raises
        and may be awaited by many, shielded or not.

        Returns:
            None when too many creations are on their way: the client asks again anyway.
        """
        running = self._running.get(name)
        if running is not None:
            return running
        loop = asyncio.get_running_loop()
        future: asyncio.Future[CreateTopicResult] = loop.create_future()
        problem = name_problem(name)
        if problem is not None:
            error = CreateTopicResult(name, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
            future.set_result(error)
            return future
        existing = self._image().topics.get(name)
        if existing is not None:
            future.set_result(CreateTopicResult(name, topic=existing))
            return future
        if len(self._running) >= AUTO_CREATIONS_MAX:
            return None
        self._running[name] = future
        self._queue.append(name)
        if len(self._queue) == 1:
            # In the next loop iteration: a request that names many topics is one commit.
            loop.call_soon(lambda: self._start(self._create_queued()))
        return future

    async def _create_queued(self) -> None:
        names, self._queue = self._queue, []
        results: dict[str, CreateTopicResult] = {}
        try:
            image = self._image()
            missing = [name for name in names if name not in image.topics]
            wanted = [
                automatic_topic(
                    name, image, self._settings, lowers_replication=self._lowers_replication
                )
                for name in missing
            ]
            for part in _parts(wanted, self._settings):
                results.update((result.name, result) for result in await self._create(part))
            if not self._lowers_replication and _has_machines(image):
                _warn_of_one_replica(
                    topic for topic in wanted if topic.name in self._image().topics
                )
        except Exception:  # this task is not awaited: the futures get a result below
            LOGGER.exception("automatic creation failed topics=%d", len(names))
        finally:
            for name in names:
                self._finish(name, results.get(name))

    def _finish(self, name: str, result: CreateTopicResult | None) -> None:
        topic = self._image().topics.get(name)
        if topic is not None:
            # Also when another creation was faster.
            result = CreateTopicResult(name, topic=topic)
        elif result is None or result.error is ErrorCode.NONE:
            result = CreateTopicResult(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if result.topic is None:
            LOGGER.warning(
                "topic not created automatically topic=%s error=%s reason=%s",
                name,
                result.error.name,
                result.message,
            )
        future = self._running.pop(name)
        if not future.done():
            future.set_result(result)


def _has_machines(image: ClusterImage) -> bool:
    """Whether there is another broker that may live while one is dead: not of the same rack."""
    racks = {broker.rack for broker in image.brokers.values()}
    return len(image.brokers) > 1 and (len(racks) > 1 or None in racks)


def _warn_of_one_replica(internal: Iterable[NewTopic]) -> None:
    """Kafka's default is three: who expects that finds out here, not when a broker dies."""
    for topic in internal:
        if topic.replication_factor == 1:
            LOGGER.warning(
                "internal topic has one replica: what it coordinates waits while its broker is"
                " away, and is lost with its disk; `varve cluster reassign` gives it more"
                " topic=%s setting=%s",
                topic.name,
                FACTOR_SETTINGS[topic.name],
            )


def _parts(topics: Sequence[NewTopic], settings: BrokerConfig) -> Iterator[list[NewTopic]]:
    """Split topics so that no part has more partitions than one request may create."""
    part: list[NewTopic] = []
    total = 0
    for topic in topics:
        count = settings.num_partitions if topic.num_partitions == -1 else topic.num_partitions
        if part and total + count > PARTITIONS_PER_REQUEST_MAX:
            yield part
            part, total = [], 0
        part.append(topic)
        total += count
    if part:
        yield part
