"""`SharePersister` in front of the share coordinators of all brokers.

    call ──> behind earlier calls for this share-partition: they are made in order, one at a time
         ──┬── coordinator here ───> asked at once
           ├── on another broker ──> its request, batched by broker, group and turn
           ├── nowhere now ────────> back-off
           └── no topic yet ───────> it is created, back-off
    outcome ──┬── the coordinator has moved, loads, is away ──> back-off, then whom the image names
              └── any other, or the time is up ──────────────> answered, the next call is made

A write whose answer was lost is repeated before later ones are sent, so that the start offset never
goes back. A late leader's write is refused by its epoch (FENCED_LEADER_EPOCH) once the next leader
has read. UNKNOWN_TOPIC_OR_PARTITION of another broker counts only when this broker's image lacks
the topic, too: else that broker has not heard of it yet.

Source: Kafka, PersisterStateManager.java (which asks FindCoordinator instead).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

from broker.coordinator.peer_batches import (
    NO_LEADER,
    NO_PARTITION,
    PeerBatches,
    PeerRequests,
    Routes,
    Soon,
    when_answered,
)
from broker.coordinator.persister import (
    Done,
    SharePartitionKey,
    SharePersister,
    StateDone,
    SummaryDone,
)
from broker.peers.errors import PeerUnavailableError
from broker.runtime.errors import ApiError
from broker.share.routing import calls
from broker.share.routing.calls import Call
from broker.share.routing.state_requests import request_of, results_of
from protocol.error_codes import ErrorCode
from protocol.internal.share_state import StateBatch
from protocol.message import Message
from storage.environment.environment import Environment

logger = logging.getLogger(__name__)

CALLS_MAX: Final = 10_000
"""Most calls that wait or are under way; further ones get COORDINATOR_NOT_AVAILABLE."""

ITEMS_PER_REQUEST: Final = 1_000

BACK_OFF_FIRST_MS: Final = 20.0
BACK_OFF_MAX_MS: Final = 500.0

USE: Final = "share-state"

_TRY_AGAIN: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


class LocalCoordinator(SharePersister, Protocol):
    """The share coordinator of this broker."""

    def partition_for(self, coordinator_key: str) -> int:
        """The partition of its topic that has a share-partition's state."""
        ...

    async def ensure_topic(self) -> None:
        """Create its topic.

        Raises:
            ApiError: It could not be created.
        """
        ...


class PersisterRouter:
    """See the module. Touched on the loop's thread only."""

    __slots__ = (
        "_batches",
        "_clock",
        "_count",
        "_creation",
        "_local",
        "_peers",
        "_queues",
        "_routes",
        "_soon",
        "_timeout_ms",
        "_timer",
        "_topic",
    )

    def __init__(
        self,
        local: LocalCoordinator,
        *,
        topic: str,
        routes: Routes,
        peers: PeerRequests,
        soon: Soon,
        environment: Environment,
        timeout_ms: float,
    ) -> None:
        """A persister for the whole cluster.

        Args:
            local: The share coordinator of this broker.
            topic: Its topic.
            routes: Who leads it.
            peers: Other brokers.
            soon: Until when calls are gathered.
            environment: Clock and timer of the back-off.
            timeout_ms: Of a call, over all attempts; the last one may take as long again.
        """
        self._local = local
        self._topic = topic
        self._routes = routes
        self._peers = peers
        self._soon = soon
        self._clock = environment.clock
        self._timer = environment.timer
        self._timeout_ms = timeout_ms
        # The first of each queue is under way.
        self._queues: dict[SharePartitionKey, deque[Call]] = {}
        self._count = 0
        self._creation: asyncio.Task[None] | None = None
        self._batches: PeerBatches[Call] = PeerBatches(self._send, soon)

    def __len__(self) -> int:
        """Calls that wait or are under way."""
        return self._count

    # -- SharePersister --------------------------------------------------------------------------

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done
    ) -> None:
        """See `SharePersister.initialize`."""
        self._add(calls.initialize(key, state_epoch, start_offset, lambda code, _: done(code)))

    def read(self, key: SharePartitionKey, leader_epoch: int, done: StateDone) -> None:
        """See `SharePersister.read`."""
        self._add(calls.read(key, leader_epoch, done))

    def read_summary(self, key: SharePartitionKey, done: SummaryDone) -> None:
        """See `SharePersister.read_summary`."""
        self._add(calls.read_summary(key, done))

    def write(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        done: Done,
    ) -> None:
        """See `SharePersister.write`."""
        self._add(
            calls.write(
                key,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                batches=batches,
                answer=lambda code, _: done(code),
            )
        )

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        """See `SharePersister.delete`."""
        self._add(calls.delete(key, lambda code, _: done(code)))

    # -- in order --------------------------------------------------------------------------------

    def _add(self, call: Call) -> None:
        if self._count >= CALLS_MAX:
            _answer(call, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
            return
        call.deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        queue = self._queues.get(call.key)
        if queue is None:
            self._count += 1
            self._queues[call.key] = deque((call,))
            self._attempt(call)
        elif len(queue) < 2 or not calls.merge(queue[-1], call):
            self._count += 1
            queue.append(call)

    def _attempt(self, call: Call) -> None:
        call.attempts += 1
        index = self._local.partition_for(call.key.coordinator_key())
        leader = self._routes.leader(self._topic, index)
        if leader == self._routes.node_id:
            call.local(self._local, partial(self._outcome, call))
        elif leader in (NO_LEADER, NO_PARTITION):
            if leader == NO_PARTITION:
                self._create_topic()
            self._outcome(call, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
        else:
            self._batches.add(leader, call)

    def _outcome(self, call: Call, code: ErrorCode, value: object) -> None:
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._routes.has(*call.place):
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if code in _TRY_AGAIN and self._clock.monotonic_ms() < call.deadline_ms:
            delay_ms = min(BACK_OFF_FIRST_MS * 2 ** min(call.attempts - 1, 10), BACK_OFF_MAX_MS)
            self._timer.call_later_ms(delay_ms, partial(self._attempt, call))
            return
        queue = self._queues[call.key]
        queue.popleft()
        self._count -= 1
        if queue:
            # Not now: a call that is answered at once would be made in the answer of the last.
            self._soon(partial(self._attempt, queue[0]))
        else:
            del self._queues[call.key]
        _answer(call, code, value)

    def _create_topic(self) -> None:
        if self._creation is None or self._creation.done():
            self._creation = asyncio.get_running_loop().create_task(self._ensure_topic())

    async def _ensure_topic(self) -> None:
        try:
            await self._local.ensure_topic()
        except ApiError as error:
            logger.warning("topic cannot be created topic=%s error=%s", self._topic, error)

    async def stop(self) -> None:
        """End the creation of the topic, if it is under way."""
        if self._creation is not None:
            self._creation.cancel()
            await asyncio.gather(self._creation, return_exceptions=True)

    # -- requests --------------------------------------------------------------------------------

    def _send(self, node_id: int, sent: list[Call]) -> None:
        by_request: dict[tuple[int, str], list[Call]] = {}
        for call in sent:
            by_request.setdefault((id(call.api), call.key.group_id), []).append(call)
        for together in by_request.values():
            for at in range(0, len(together), ITEMS_PER_REQUEST):
                self._request(node_id, together[at : at + ITEMS_PER_REQUEST])

    def _request(self, node_id: int, together: list[Call]) -> None:
        api, group_id = together[0].api, together[0].key.group_id
        message = request_of(api, group_id, [(call.key.topic_id, call.item) for call in together])
        when_answered(
            self._peers.request(
                node_id, message, api.version, timeout_ms=self._timeout_ms, use=USE
            ),
            partial(self._answered, together),
            partial(self._failed, together),
        )

    def _answered(self, together: list[Call], answer: Message) -> None:
        results = results_of(together[0].api, answer)
        missing = (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        for call in together:
            self._outcome(call, *results.get(call.place, missing))

    def _failed(self, together: list[Call], error: PeerUnavailableError) -> None:
        logger.info("share coordinator is away error=%s", error)
        for call in together:
            self._outcome(call, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)


def _answer(call: Call, code: ErrorCode, value: object) -> None:
    for answer in call.answers:
        try:
            answer(code, value)
        except Exception:
            # Calls of independent share-partitions are answered together.
            logger.exception("caller of the share coordinator failed key=%s", call.key)
