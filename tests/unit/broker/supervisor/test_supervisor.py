"""Brokers, their store and their directories: in which order they begin and end."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.controller.store.unix.unix_store import UnixStore
from broker.offline.opening import command_environment
from broker.runtime.startup_errors import StartupError
from broker.supervisor.supervised_broker import BrokerState
from broker.supervisor.supervisor import Supervisor
from config.load import load
from storage.checkpoints.brokers_note import read_brokers_note
from storage.environment.local_filesystem import LocalFilesystem
from tests.unit.broker.supervisor.processes import FakeLaunch, settle


class World:
    """Supervisors on one directory, with processes that do nothing."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.launch = FakeLaunch()
        self._exit = command_environment()
        self._environment = self._exit.__enter__()
        self._made: list[Supervisor] = []

    def supervisor(self, count: int, *given: str) -> Supervisor:
        made = Supervisor(
            load(assignments=[f"log.dirs={self.data}", *given]),
            count,
            launch=self.launch,
            environment=self._environment,
            machine_name="m",
        )
        self._made.append(made)
        return made

    async def close(self) -> None:
        for one in self._made:
            await one.stop()
        self._exit.__exit__(None, None, None)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    with tempfile.TemporaryDirectory() as directory:
        world = World(Path(directory))
        yield world
        await world.close()


async def begin(supervisor: Supervisor) -> None:
    await supervisor.open()
    supervisor.start()


async def test_brokers_are_started_on_a_store_that_answers(world: World) -> None:
    supervisor = world.supervisor(2)
    await begin(supervisor)
    await settle()
    stores = {process.plan.settings["metadata.store"] for process in world.launch.processes}
    assert stores == {f"unix:{world.data}/varve-store/varve-brokers.sock"}
    assert supervisor.store_address in stores
    store = await UnixStore.open(supervisor.store_address.removeprefix("unix:"))
    await store.aclose()
    assert os.listdir(world.data / "broker-2") == []
    assert read_brokers_note(LocalFilesystem(), str(world.data)) == (1, 2)
    served = asyncio.ensure_future(supervisor.served())
    for process in world.launch.processes:
        await settle()
        assert not served.done()
        process.listen()
    await served


async def test_brokers_stop_one_after_the_other_and_the_store_last(world: World) -> None:
    supervisor = world.supervisor(2)
    await begin(supervisor)
    await settle()
    first, second = world.launch.processes
    for process in (first, second):
        process.listen()
        process.stubborn = True
    await supervisor.served()
    stopping = asyncio.ensure_future(supervisor.stop())
    await settle()
    assert (first.signals, second.signals) == (["TERM"], [])
    first.end(0)
    await settle()
    assert second.signals == ["TERM"]
    assert (world.data / "varve-store/varve-brokers.sock").exists()
    second.end(0)
    await stopping
    assert not (world.data / "varve-store/varve-brokers.sock").exists()
    # Nothing is held any more.
    again = world.supervisor(2)
    await begin(again)


async def test_in_a_hurry_all_stop_at_once(world: World) -> None:
    supervisor = world.supervisor(3)
    await begin(supervisor)
    await settle()
    for process in world.launch.processes:
        process.listen()
        process.stubborn = True
    await supervisor.served()
    stopping = asyncio.ensure_future(supervisor.stop())
    await settle()
    supervisor.hurry()
    assert [process.signals for process in world.launch.processes] == [["TERM"]] * 3
    for process in world.launch.processes:
        process.end(0)
    await stopping


async def test_a_refused_start_ends_all(world: World) -> None:
    supervisor = world.supervisor(2)
    await begin(supervisor)
    await settle()
    world.launch.processes[0].listen()
    world.launch.processes[1].end(1)
    with pytest.raises(StartupError, match="broker 2 does not start"):
        await supervisor.served()
    await supervisor.stop()
    assert world.launch.processes[0].signals == ["TERM"]
    assert {broker.state for broker in supervisor.brokers} == {BrokerState.STOPPED}


async def test_a_second_supervisor_is_refused_and_leaves_the_first_alone(world: World) -> None:
    first = world.supervisor(1)
    await begin(first)
    second = world.supervisor(1)
    with pytest.raises(StartupError, match=str(world.data)):
        await begin(second)
    await second.stop()
    store = await UnixStore.open(first.store_address.removeprefix("unix:"))
    await store.aclose()


async def test_settings_that_cannot_be_make_nothing(world: World) -> None:
    supervisor = world.supervisor(2, "listeners=PLAINTEXT://:65535")
    with pytest.raises(StartupError):
        await begin(supervisor)
    assert not world.data.exists()


async def test_the_store_alone(world: World) -> None:
    """For commands that fill it: no note is looked for, or written."""
    supervisor = world.supervisor(0)
    await begin(supervisor)
    await supervisor.served()
    store = await UnixStore.open(supervisor.store_address.removeprefix("unix:"))
    await store.aclose()
    assert read_brokers_note(LocalFilesystem(), str(world.data)) is None
    assert world.launch.processes == []


async def test_an_etcd_is_not_served(world: World) -> None:
    etcd = "metadata.store=etcd://127.0.0.1:1"
    supervisor = world.supervisor(1, etcd)
    await begin(supervisor)
    await settle()
    assert supervisor.host is None
    assert world.launch.last.plan.settings["metadata.store"] == "etcd://127.0.0.1:1"
    assert not (world.data / "varve-store").exists()
    with pytest.raises(StartupError, match="--brokers 0"):
        await world.supervisor(0, etcd).open()
