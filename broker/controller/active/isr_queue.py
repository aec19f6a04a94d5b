"""AlterPartition requests that wait for the controller: all of them go into one transaction.

    add ──> waiting ──its turn among the changes──> one plan ──> one transaction ──> answers
              └── WAITING_MAX are waiting, or the controller is deposed: NOT_CONTROLLER

Leaders ask for ISR changes by the hundred at a failover; each request would be a transaction of its
own otherwise.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from broker.controller.active.broker_states import BrokerStates
from broker.controller.active.isr_changes import IsrChanges, response_of
from broker.controller.active.partition_plan import PartitionPlan, chunk_of, units_of
from broker.controller.active.slices import Slices
from broker.controller.active.topic_terms import TopicTerms
from broker.controller.changes import Changes
from broker.controller.configs.configs import ConfigRules
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.store.metadata_store import StoreError
from broker.controller.store.store_writer import ConflictError, NotControllerError
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

WAITING_MAX: Final = 10_000
"""AlterPartition requests that may wait for their turn; one more is refused."""


class _Waiting:
    """One AlterPartition request on its way into a transaction."""

    __slots__ = ("answer", "request", "version")

    def __init__(self, request: AlterPartitionRequest, version: int) -> None:
        self.request = request
        self.version = version
        self.answer: asyncio.Future[AlterPartitionResponse] = (
            asyncio.get_running_loop().create_future()
        )

    def refuse(self, refusal: ApiError) -> None:
        """Answer with a refusal, if the request still waits: its connection may have ended."""
        if not self.answer.done():
            self.answer.set_exception(refusal)
            # Nothing may be left that asks for it.
            self.answer.exception()


class IsrQueue:
    """See the module. Runs on the loop's thread."""

    __slots__ = ("_changes", "_clock", "_image", "_rules", "_states", "_waiting")

    def __init__(
        self,
        changes: Changes,
        *,
        image: Callable[[], ClusterImage],
        states: Callable[[ClusterImage], BrokerStates],
        rules: ConfigRules,
        clock: Clock,
    ) -> None:
        """Nothing waits yet.

        Args:
            changes: All of the cluster's state go through it.
            image: The newest.
            states: Of its brokers, now.
            rules: Settings of the cluster.
            clock: For slices.
        """
        self._changes = changes
        self._image = image
        self._states = states
        self._rules = rules
        self._clock = clock
        self._waiting: list[_Waiting] = []

    async def add(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        """Its answer, once it has had its turn.

        Raises:
            ApiError: NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED.
        """
        if len(self._waiting) >= WAITING_MAX:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        waiting = _Waiting(request, version)
        self._waiting.append(waiting)
        if len(self._waiting) == 1:
            self._changes.start_unawaited(self._changes.run(self._alter_waiting()))
        return await waiting.answer

    async def _alter_waiting(self) -> None:
        taken, self._waiting = self._waiting, []
        try:
            await self._alter(taken)
        except StoreError as error:
            LOGGER.info("ISR changes interrupted error=%s", error)
        finally:
            for waiting in taken:
                waiting.refuse(ApiError(ErrorCode.NOT_CONTROLLER))

    async def _alter(self, taken: list[_Waiting]) -> None:
        image = self._image()
        states = self._states(image)
        terms = TopicTerms(image, self._rules, states)
        plan = PartitionPlan(image)
        changes = IsrChanges(plan, terms)
        slices = Slices(self._clock)
        planned = []
        for waiting in taken:
            try:
                found = await changes.add(waiting.request, waiting.version, slices)
                planned.append((waiting, found))
            except ApiError as refusal:
                waiting.refuse(refusal)
        chunks = await units_of(plan, slices)
        errors = await self._changes.commit(list(chunks.values()), until_applied=False)
        if any(isinstance(error, NotControllerError) for error in errors):
            return
        failed = dict(zip(chunks, errors, strict=True))

        def error_of(topic: TopicImage, index: int) -> ErrorCode | None:
            return code_of_commit(failed.get(chunk_of(topic.topic_id, index)))

        for waiting, partitions in planned:
            if not waiting.answer.done():
                waiting.answer.set_result(response_of(waiting.request, partitions, error_of))


def code_of_commit(error: StoreError | None) -> ErrorCode | None:
    """What the leader of a partition gets that could not be committed; it asks again."""
    match error:
        case None:
            return None
        case ConflictError():
            # Its topic has been deleted.
            return ErrorCode.UNKNOWN_TOPIC_ID
        case _:
            return ErrorCode.REQUEST_TIMED_OUT
