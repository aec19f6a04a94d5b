"""A broker that ends is started again, with pauses that grow, until it is told to stop."""

import asyncio
import logging

import pytest

from broker.supervisor.plan import BrokerPlan
from broker.supervisor.supervised_broker import (
    AGAIN_MAX_MS,
    SERVED_MS,
    STOP_MS,
    BrokerState,
    SupervisedBroker,
)
from tests.fakes.environment import FakeEnvironment
from tests.unit.broker.supervisor.processes import KILLED, FakeLaunch, settle


class World:
    """One broker, and the states it went through."""

    def __init__(self) -> None:
        self.environment = FakeEnvironment()
        self.launch = FakeLaunch()
        self.states: list[BrokerState] = []
        self.broker = SupervisedBroker(
            BrokerPlan(2, {}),
            self.launch,
            self.environment,
            lambda: self.states.append(self.broker.state),
        )

    def is_reached(self) -> bool:
        return self.broker.listening is not None or self.broker.pid != 0

    def state(self) -> BrokerState:
        return self.broker.state

    async def start(self) -> None:
        self.broker.start()
        await settle()

    async def listen(self) -> None:
        self.launch.last.listen()
        await settle()

    async def end(self, status: int) -> None:
        self.launch.last.end(status)
        await settle()

    async def advance(self, ms: float) -> None:
        self.environment.timer.advance(ms)
        await settle()


@pytest.fixture
async def world() -> World:
    return World()


async def test_it_is_started_again_after_a_pause(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.start()
    assert world.state() is BrokerState.STARTING
    await world.listen()
    assert world.state() is BrokerState.SERVING
    assert world.broker.listening is not None
    assert world.broker.pid == world.launch.last.pid
    with caplog.at_level(logging.ERROR):
        await world.end(KILLED)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "node=2 status=-9 restarts=1" in caplog.text
    assert world.state() is BrokerState.WAITING
    assert not world.is_reached()
    assert len(world.launch.processes) == 1
    await world.advance(1_000)
    assert len(world.launch.processes) == 2
    await world.listen()
    assert world.state() is BrokerState.SERVING
    assert world.broker.restarts == 1
    await world.broker.stop()


async def test_pauses_grow_to_a_maximum_and_begin_again_after_it_has_served(world: World) -> None:
    await world.start()
    await world.listen()
    pauses = []
    for _ in range(12):
        await world.end(1)
        began_ms, starts = world.environment.clock.monotonic_ms(), world.broker.starts
        while world.broker.starts == starts:
            await world.advance(50)
        pauses.append(world.environment.clock.monotonic_ms() - began_ms)
    assert pauses[0] < 700
    assert pauses[3] > 3 * pauses[0]
    assert max(pauses) <= AGAIN_MAX_MS + 50
    assert pauses[-1] > AGAIN_MAX_MS / 2
    await world.listen()
    await world.advance(SERVED_MS)
    await world.end(KILLED)
    await world.advance(700)
    assert world.state() is BrokerState.STARTING
    await world.broker.stop()


async def test_a_start_that_is_refused_is_not_repeated(world: World) -> None:
    """It has said why, and the operator has just typed the command."""
    await world.start()
    await world.end(1)
    assert world.state() is BrokerState.REFUSED
    await world.advance(100_000)
    assert len(world.launch.processes) == 1
    await world.broker.stop()


async def test_what_was_refused_later_is_tried_again(world: World) -> None:
    """A port may be free again; others serve meanwhile."""
    await world.start()
    await world.listen()
    await world.end(KILLED)
    await world.advance(1_000)
    await world.end(1)
    assert world.state() is BrokerState.WAITING
    await world.advance(2_000)
    assert len(world.launch.processes) == 3
    await world.broker.stop()


async def test_a_kill_during_the_first_start_is_no_refusal(world: World) -> None:
    await world.start()
    await world.end(KILLED)
    await world.advance(1_000)
    assert len(world.launch.processes) == 2
    await world.broker.stop()


async def test_a_machine_without_room_for_a_process(world: World) -> None:
    world.launch.refuses = 1
    await world.start()
    assert world.state() is BrokerState.WAITING
    await world.advance(1_000)
    assert len(world.launch.processes) == 1
    await world.broker.stop()


async def test_told_to_stop_it_is_not_started_again(world: World) -> None:
    await world.start()
    await world.listen()
    await world.broker.stop()
    assert world.launch.last.signals == ["TERM"]
    assert world.state() is BrokerState.STOPPED
    await world.advance(100_000)
    assert len(world.launch.processes) == 1
    assert world.environment.timer.pending == 0


async def test_told_to_stop_while_it_waits(world: World) -> None:
    await world.start()
    await world.listen()
    await world.end(KILLED)
    await world.broker.stop()
    assert world.state() is BrokerState.STOPPED
    assert len(world.launch.processes) == 1


async def test_told_to_stop_while_its_process_begins(world: World) -> None:
    """The process is there a moment later, and is not left behind."""
    world.broker.start()
    await asyncio.sleep(0)
    await world.broker.stop()
    assert [process.signals for process in world.launch.processes] == [["TERM"]]


async def test_one_that_does_not_stop_is_killed(world: World) -> None:
    await world.start()
    await world.listen()
    world.launch.last.stubborn = True
    stopping = asyncio.ensure_future(world.broker.stop())
    await settle()
    await world.advance(STOP_MS - 1)
    assert world.launch.last.signals == ["TERM"]
    await world.advance(1)
    await stopping
    assert world.launch.last.signals == ["TERM", "KILL"]
