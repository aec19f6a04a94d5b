"""Reports of where replicas lie: to the controller, for every log that is not where the image says.

    log opened, or its directory failed ──> the image has it there ──> nothing
                                        └──> queued ──let in──> AssignReplicasToDirs ──> dropped
                                                ^                       │ no controller, no answer,
                                                └───────── 500 ms ──────┘ refused for now

A replica whose move was noted and then failed stays where it is, and is reported until that is
written down, whatever the image says meanwhile: it may be older than what was noted.

A replica in a directory that has failed is reported like any other. The controller then elects
others for it: it could not know before that the directory mattered.

Source: Kafka 4.2, AssignmentsManager.java (KIP-858).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.features import VARVE_VERSION, RecordLevel
from broker.runtime.pauses import pause
from protocol.error_codes import ErrorCode
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
    AssignReplicasToDirsResponse,
)
from storage.environment.timer import Timer

LOGGER = logging.getLogger(__name__)

REQUEST_MAX: Final = 2_250
"""Replicas in one request, as in Kafka."""

AGAIN_MS: Final = 500.0

TIMEOUT_MS: Final = 5_000.0

_OVER: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
"""The replica is not assigned here any more: there is nothing to be said of it."""


class Replica(NamedTuple):
    """A replica of this broker."""

    topic_id: UUID
    partition: int


class Channel(Protocol):
    """The way to the controller."""

    def assign_replicas(
        self, request: AssignReplicasToDirsRequest, *, timeout_ms: float
    ) -> Awaitable[AssignReplicasToDirsResponse]:
        """See `ControllerChannel.assign_replicas`."""
        ...


class ReplicaPlaces:
    """See the module. Runs on the loop's thread; one request is under way at a time.

    Its queue has each replica of this broker once at most.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        is_let_in: Callable[[], bool],
        image: Callable[[], ClusterImage],
        timer: Timer,
    ) -> None:
        """Report nothing before this broker is let in.

        Args:
            channel: To the controller.
            node_id: Of this broker.
            broker_epoch: Of this life.
            is_let_in: Whether the newest image lets this life in.
            image: The newest.
            timer: For trying again.
        """
        self._channel = channel
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._is_let_in = is_let_in
        self._image = image
        self._timer = timer
        self._due: dict[Replica, UUID] = {}
        # Of those due, what the image is not believed about.
        self._staying: set[Replica] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def __len__(self) -> int:
        """Replicas that are to be reported."""
        return len(self._due)

    def found(self, topic_id: UUID, index: int, directory_id: UUID) -> None:
        """A replica lies there; reported if the image does not say so."""
        replica = Replica(topic_id, index)
        if self._is_known(replica, directory_id) and replica not in self._staying:
            self._due.pop(replica, None)
            return
        self._due[replica] = directory_id
        self._run()

    def image_changed(self) -> None:
        """This broker may have been let in."""
        if self._due:
            self._run()

    async def assign(
        self, places: Mapping[UUID, Mapping[int, UUID]], *, stays: bool = False
    ) -> set[UUID]:
        """Report places, and wait for the controller's answer.

        Args:
            places: Directory by topic id and index.
            stays: The replicas lie there: what is not written down now is reported until it is.

        Returns:
            The topics all of whose replicas the controller has written down.
        """
        wanted = {
            Replica(topic_id, index): directory_id
            for topic_id, indexes in places.items()
            for index, directory_id in indexes.items()
        }
        before = {one: self._due.pop(one) for one in wanted if one in self._due}
        staying = self._staying.intersection(before)
        left = await self._ask(wanted) if self._can_ask() else None
        for replica in wanted:
            if left is not None and replica not in left:
                continue
            if stays:
                self._due[replica] = wanted[replica]
                self._staying.add(replica)
            elif replica in before:
                # It is where it was, which is still to be said.
                self._due.setdefault(replica, before[replica])
        self._staying |= staying.intersection(self._due)
        self._run()
        refused = {replica.topic_id for replica in left} if left is not None else set(places)
        return set(places) - refused

    def _is_known(self, replica: Replica, directory_id: UUID) -> bool:
        topic = self._image().topics_by_id.get(replica.topic_id)
        if topic is None or replica.partition >= len(topic.partitions):
            return True
        partition = topic.partitions[replica.partition]
        known = partition.directory_on(self._node_id)
        return known == directory_id or self._node_id not in partition.replicas

    def _can_ask(self) -> bool:
        """Whether the controller is of a release that takes these reports."""
        image = self._image()
        broker = image.brokers.get(image.controller_id)
        if broker is None or broker.registration is None or not self._is_let_in():
            return False
        levels = broker.registration.features.get(VARVE_VERSION)
        return levels is not None and levels.highest >= RecordLevel.MOVES

    def _run(self) -> None:
        if not self._due or self._is_closed or not self._is_let_in():
            return
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(
                self._report(), name="report of replica places"
            )

    async def _report(self) -> None:
        while self._due:
            self._staying.intersection_update(self._due)
            for replica in [
                one
                for one, place in self._due.items()
                if one not in self._staying and self._is_known(one, place)
            ]:
                del self._due[replica]
            asked = dict(list(self._due.items())[:REQUEST_MAX])
            if not asked:
                return
            left = await self._ask(asked) if self._can_ask() else None
            for replica, place in asked.items():
                if left is not None and replica not in left and self._due.get(replica) == place:
                    del self._due[replica]
                    self._staying.discard(replica)
            if left is None or left:
                await pause(self._timer, AGAIN_MS)

    async def _ask(self, places: Mapping[Replica, UUID]) -> set[Replica] | None:
        """Send one request; the replicas that were not written down, None: all of them."""
        by_place: dict[UUID, dict[UUID, list[int]]] = {}
        for replica, directory_id in places.items():
            topics = by_place.setdefault(directory_id, {})
            topics.setdefault(replica.topic_id, []).append(replica.partition)
        request = AssignReplicasToDirsRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                AssignReplicasToDirsRequestDirectoryData(
                    id_=directory_id,
                    topics=[
                        AssignReplicasToDirsRequestTopicData(
                            topic_id=topic_id,
                            partitions=[
                                AssignReplicasToDirsRequestPartitionData(partition_index=index)
                                for index in indexes
                            ],
                        )
                        for topic_id, indexes in topics.items()
                    ],
                )
                for directory_id, topics in by_place.items()
            ],
        )
        answer = await self._channel.assign_replicas(request, timeout_ms=TIMEOUT_MS)
        if answer.error_code:
            LOGGER.info(
                "replica places not written down replicas=%d error=%s",
                len(places),
                ErrorCode(answer.error_code).name,
            )
            return None
        left = set(places)
        for directory in answer.directories:
            for topic in directory.topics:
                for partition in topic.partitions:
                    code = ErrorCode(partition.error_code)
                    if code is ErrorCode.NONE or code in _OVER:
                        left.discard(Replica(topic.topic_id, partition.partition_index))
        return left

    async def aclose(self) -> None:
        """Report nothing more."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
