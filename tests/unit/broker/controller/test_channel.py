"""The way to the controller: here, there, or looked for until the time is up."""

import asyncio
import math
from dataclasses import replace

import pytest

from broker.controller.channel import AGAIN_MS, ControllerChannel
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.store.metadata_store import StoreError, StoreUnavailableError
from broker.peers.errors import PeerUnavailableError
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.message import Message
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from tests.fakes.timer import ManualTimer

OK = AlterPartitionResponse(error_code=0)
NOT_CONTROLLER = int(ErrorCode.NOT_CONTROLLER)


class Active:
    """This broker as the controller, or not."""

    def __init__(self) -> None:
        self.is_active = False
        self.error: ErrorCode | None = None

    async def alter_partition(self, _: object, version: int) -> AlterPartitionResponse:
        assert version == 3
        if self.error is not None:
            raise ApiError(self.error)
        return OK


class World:
    """A channel of broker 1, with answers of peers in order."""

    def __init__(self, *answers: Message | Exception | None) -> None:
        self.timer = ManualTimer()
        self.active = Active()
        self.answers = list(answers)
        self.asked: list[int] = []
        self.caught_up = 0
        self.valid_until_ms = math.inf
        self.store_error: StoreError | None = None
        self.image = replace(ClusterImage.empty(controller_id=2), controller_epoch=5)
        self.channel = ControllerChannel(
            self.active,  # type: ignore[arg-type]  # the part of it that is used
            node_id=1,
            image=lambda: self.image,
            peers=self,
            catch_up=self.catch_up,
            valid_until_ms=lambda: self.valid_until_ms,
            timer=self.timer,
            clock=self.timer.clock,
        )

    async def catch_up(self) -> None:
        self.caught_up += 1
        if self.store_error is not None:
            raise self.store_error

    def request(
        self, node_id: int, message: Message, version: int, *, timeout_ms: float, use: str
    ) -> "asyncio.Future[Message]":
        self.asked.append(node_id)
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            future.set_exception(answer)
        elif answer is not None:
            future.set_result(answer)
        return future

    async def alter(self, timeout_ms: float = 1000.0) -> AlterPartitionResponse:
        request = AlterPartitionRequest()
        asking = asyncio.ensure_future(self.channel.alter_partition(request, timeout_ms=timeout_ms))
        for _ in range(200):
            await asyncio.sleep(0)
            if asking.done():
                break
            self.timer.advance(AGAIN_MS / 4)
        return await asking

    def move(self, controller: int) -> None:
        old = self.image
        self.image = replace(
            old, controller_id=controller, controller_epoch=old.controller_epoch + 1
        )
        self.channel.on_image(old, self.image)


async def test_here_without_the_network() -> None:
    world = World()
    world.active.is_active = True
    assert await world.alter() is OK
    assert world.asked == []
    world.active.error = ErrorCode.STALE_BROKER_EPOCH
    assert (await world.alter()).error_code == ErrorCode.STALE_BROKER_EPOCH


async def test_there_where_the_image_says() -> None:
    world = World(OK)
    assert await world.alter() is OK
    assert world.asked == [2]


@pytest.mark.parametrize(
    "failure",
    [
        PeerUnavailableError(2, sent=True, reason="has ended"),
        AlterPartitionResponse(error_code=NOT_CONTROLLER),
    ],
)
async def test_asked_again_until_there_is_a_controller(failure: Message | Exception) -> None:
    world = World(failure, failure, OK)
    assert await world.alter() is OK
    assert world.asked == [2, 2, 2]


async def test_any_other_error_is_the_answer() -> None:
    refused = AlterPartitionResponse(error_code=int(ErrorCode.STALE_BROKER_EPOCH))
    assert await World(refused).alter() is refused


async def test_none_in_time() -> None:
    """Without a controller, or one that is this broker by the image alone."""
    world = World()
    world.move(-1)
    assert (await world.alter()).error_code == NOT_CONTROLLER
    world.move(1)
    assert (await world.alter()).error_code == NOT_CONTROLLER
    assert world.asked == []


async def test_a_silent_controller_is_left_when_another_is_elected() -> None:
    """It may be stopped: the request goes to the next one at once."""
    world = World(None, OK)
    asking = asyncio.ensure_future(
        world.channel.alter_partition(AlterPartitionRequest(), timeout_ms=60_000)
    )
    for _ in range(5):
        await asyncio.sleep(0)
    world.move(3)
    for _ in range(20):
        await asyncio.sleep(0)
        world.timer.advance(AGAIN_MS)
    assert await asking is OK
    assert world.asked == [2, 3]


async def test_a_forwarded_request_is_answered_when_the_image_is_there() -> None:
    world = World(EnvelopeResponse(response_data=b"x", error_code=0))
    answer = await world.channel.forward(EnvelopeRequest(), timeout_ms=1000)
    assert answer is not None
    assert answer.response_data == b"x"
    assert world.caught_up == 1


async def test_what_is_to_be_handled_here_is_not_forwarded() -> None:
    """This broker was elected meanwhile."""
    world = World()
    world.active.is_active = True
    assert await world.channel.forward(EnvelopeRequest(), timeout_ms=1000) is None
    assert world.caught_up == 0


async def test_a_controller_without_a_lease_asks_the_store_before_it_answers() -> None:
    """Another may have been elected, and have made what this one does not know."""
    world = World()
    world.active.is_active = True
    assert await world.channel.settle()
    assert world.caught_up == 0
    world.valid_until_ms = world.timer.clock.monotonic_ms()
    assert await world.channel.settle()
    assert world.caught_up == 1
    world.store_error = StoreUnavailableError("the store has not answered")
    assert not await world.channel.settle()
    world.active.is_active = False
    assert await world.channel.settle()
    assert world.caught_up == 2


async def test_who_answers_in_the_controllers_place_asks_the_store_before() -> None:
    """Cut off, it does not know what was made since: it would refuse that as unknown."""
    world = World()
    world.active.is_active = False
    assert await world.channel.settle()
    assert world.caught_up == 0
    assert await world.channel.settle(unanswered=True)
    assert world.caught_up == 1
    world.store_error = StoreUnavailableError("the store has not answered")
    assert not await world.channel.settle(unanswered=True)
    # Elected meanwhile, and its lease holds.
    world.active.is_active = True
    assert await world.channel.settle(unanswered=True)
