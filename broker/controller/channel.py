"""The way to the active controller, wherever it is.

    request ──> this broker is the controller ──> handled here
       │
       └──────> the image names another ──> sent there ──> answer
                     ^                        │ NOT_CONTROLLER, unreachable, no controller
                     └──────── 20 ms ─────────┘ until the request's time is up

A request that may have reached a controller whose answer was lost is sent again: ISR changes and
fences are told apart by epochs, and an administrator's request that was carried out is refused the
second time (TOPIC_ALREADY_EXISTS ...), as where a client repeats it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from broker.controller.active.active_controller import ActiveController
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.store.metadata_store import StoreError
from broker.peers.errors import PeerUnavailableError
from broker.runtime.errors import ApiError
from broker.runtime.timer import Timer
from protocol.error_codes import ErrorCode
from protocol.message import Message
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from storage.environment.clock import Clock

AGAIN_MS: Final = 20.0
"""Before the controller is looked for again."""

ALTER_PARTITION_VERSION: Final = 3
ENVELOPE_VERSION: Final = 0

CONTROL: Final = "control"
"""The connection of ISR changes, and of where replicas lie."""

FORWARDING: Final = "forwarding"
"""The connection of administrators' requests, which may take long."""

ASSIGN_REPLICAS_VERSION: Final = 0

_Answer = TypeVar("_Answer", AlterPartitionResponse, EnvelopeResponse, AssignReplicasToDirsResponse)


class PeerRequests(Protocol):
    """Requests to other brokers, as `broker.peers.peers` sends them."""

    def request(
        self, node_id: int, message: Message, version: int, *, timeout_ms: float, use: str
    ) -> Awaitable[Message]:
        """Send one; see there."""
        ...


class ControllerChannel:
    """See the module. Runs on the loop's thread."""

    def __init__(
        self,
        active: ActiveController,
        *,
        node_id: int,
        image: Callable[[], ClusterImage],
        peers: PeerRequests | None,
        catch_up: Callable[[], Awaitable[None]],
        valid_until_ms: Callable[[], float],
        timer: Timer,
        clock: Clock,
    ) -> None:
        """Connect to nothing yet.

        Args:
            active: This broker's part of being the controller.
            node_id: Of this broker.
            image: The newest.
            peers: None on a single node, which is always the controller.
            catch_up: Waits until this broker's image has what the store has now; StoreError: the
                store cannot be read.
            valid_until_ms: Until when its image is known to be good, on the monotonic clock.
            timer: For trying again.
            clock: For the time that a request has.
        """
        self._catch_up = catch_up
        self._valid_until_ms = valid_until_ms
        self._moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._active = active
        self._node_id = node_id
        self._image = image
        self._peers = peers
        self._timer = timer
        self._clock = clock
        self.forwarded = 0

    @property
    def is_here(self) -> bool:
        """Whether this broker is the active controller."""
        return self._active.is_active

    async def settle(self, *, unanswered: bool = False) -> bool:
        """Have a broker that answers as the controller hear what the store has now.

        Another may be it: what that one has made would be refused here as unknown. One that is the
        controller, and holds its lease, need not ask.

        Args:
            unanswered: No controller was found in time, and this broker answers in its place.

        Returns:
            False: the store cannot be read, so nobody knows who the controller is.
        """
        is_its = self.is_here and self._clock.monotonic_ms() < self._valid_until_ms()
        if not is_its and (self.is_here or unanswered):
            try:
                await self._catch_up()
            except StoreError:
                return False
        return True

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """End the wait for a controller that is none any more; called with every image."""
        if old.controller_epoch != new.controller_epoch:
            moved, self._moved = self._moved, asyncio.get_running_loop().create_future()
            moved.set_result(None)

    async def alter_partition(
        self, request: AlterPartitionRequest, *, timeout_ms: float = 5_000.0
    ) -> AlterPartitionResponse:
        """Ask for ISR changes.

        Returns:
            The controller's answer; `error_code` NOT_CONTROLLER when none was found in time, so
            that what has become of it is not known.
        """

        async def here() -> AlterPartitionResponse:
            try:
                return await self._active.alter_partition(request, ALTER_PARTITION_VERSION)
            except ApiError as error:
                return AlterPartitionResponse(error_code=int(error.code))

        async def there(node_id: int, left_ms: float) -> AlterPartitionResponse:
            answer = await self._ask(node_id, request, ALTER_PARTITION_VERSION, left_ms, CONTROL)
            assert isinstance(answer, AlterPartitionResponse)
            return answer

        answer = await self._until_answered(here, there, timeout_ms)
        return answer or AlterPartitionResponse(error_code=int(ErrorCode.NOT_CONTROLLER))

    async def assign_replicas(
        self, request: AssignReplicasToDirsRequest, *, timeout_ms: float = 5_000.0
    ) -> AssignReplicasToDirsResponse:
        """Have it written down where replicas of this broker lie.

        Returns:
            As of `alter_partition`.
        """

        async def here() -> AssignReplicasToDirsResponse:
            try:
                return await self._active.assign_replicas(request)
            except ApiError as error:
                return AssignReplicasToDirsResponse(error_code=int(error.code))

        async def there(node_id: int, left_ms: float) -> AssignReplicasToDirsResponse:
            answer = await self._ask(node_id, request, ASSIGN_REPLICAS_VERSION, left_ms, CONTROL)
            assert isinstance(answer, AssignReplicasToDirsResponse)
            return answer

        answer = await self._until_answered(here, there, timeout_ms)
        return answer or AssignReplicasToDirsResponse(error_code=int(ErrorCode.NOT_CONTROLLER))

    async def forward(
        self, request: EnvelopeRequest, *, timeout_ms: float
    ) -> EnvelopeResponse | None:
        """Have the controller handle a client's request; this broker's image has it afterwards.

        Returns:
            Its answer; None when this broker has become the controller, or no answer came in time.
        """

        async def here() -> None:
            return None

        async def there(node_id: int, left_ms: float) -> EnvelopeResponse:
            answer = await self._ask(node_id, request, ENVELOPE_VERSION, left_ms, FORWARDING)
            assert isinstance(answer, EnvelopeResponse)
            return answer

        self.forwarded += 1
        answer = await self._until_answered(here, there, timeout_ms)
        if answer is not None:
            # The change is made; this broker's image shows it once the store can be read.
            with suppress(StoreError):
                await self._catch_up()
        return answer

    async def _ask(
        self, node_id: int, request: Message, version: int, left_ms: float, use: str
    ) -> Message:
        if self._peers is None:
            raise PeerUnavailableError(node_id, sent=False, reason="a single node has no peers")
        moved = self._moved
        answer = asyncio.ensure_future(
            self._peers.request(node_id, request, version, timeout_ms=left_ms, use=use)
        )
        try:
            await asyncio.wait((answer, moved), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                reason = "is no longer the controller"
                raise PeerUnavailableError(node_id, sent=True, reason=reason)
            return answer.result()
        finally:
            answer.cancel()

    async def _until_answered(
        self,
        here: Callable[[], Awaitable[_Answer | None]],
        there: Callable[[int, float], Awaitable[_Answer]],
        timeout_ms: float,
    ) -> _Answer | None:
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while True:
            answer: _Answer | None = None
            if self._active.is_active:
                answer = await here()
                if answer is None:
                    return None
            else:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                controller = self._image().controller_id
                if controller not in (-1, self._node_id):
                    try:
                        answer = await there(controller, max(left_ms, 1.0))
                    except PeerUnavailableError:
                        answer = None
            if answer is not None and answer.error_code != ErrorCode.NOT_CONTROLLER:
                return answer
            if self._clock.monotonic_ms() + AGAIN_MS >= deadline_ms:
                return None
            await self._pause()

    async def _pause(self) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        handle = self._timer.call_later_ms(AGAIN_MS, end)
        try:
            await over
        finally:
            handle.cancel()
