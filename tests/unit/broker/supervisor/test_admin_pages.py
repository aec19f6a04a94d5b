"""One admin port for several brokers, some of which do not answer."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker.network.admin_http import AdminServer, Page, Query
from broker.offline.opening import command_environment
from broker.runtime.startup_errors import StartupError
from broker.supervisor.admin_pages import AdminPages
from broker.supervisor.supervisor import Supervisor
from config.listeners import Endpoint
from config.load import load
from tests.fakes.network.client import http_get
from tests.unit.broker.supervisor.processes import KILLED, FakeLaunch, settle

METRICS = b"# HELP a_total Text.\n# TYPE a_total counter\na_total 2.0\n"


class Port:
    """Admin port of a broker."""

    def __init__(self) -> None:
        self.ready = Page(200, b"ready\nalert: a: b\n")
        self.server = AdminServer(
            {"/readyz": self._readyz, "/metrics": self._metrics, "/cluster": self._cluster}
        )

    async def _readyz(self, _query: Query) -> Page:
        return self.ready

    async def _metrics(self, _query: Query) -> Page:
        return Page(200, METRICS)

    async def _cluster(self, _query: Query) -> Page:
        return Page(200, b'{"cluster_id": "c"}\n')

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"


class World:
    """Two brokers behind one admin port."""

    def __init__(self, supervisor: Supervisor, pages: AdminPages, launch: FakeLaunch) -> None:
        self.supervisor = supervisor
        self.pages = pages
        self.launch = launch
        self.ports = [Port(), Port()]

    async def listen(self, number: int) -> None:
        """Have a broker say where it listens."""
        self.launch.processes[number].listen(9092 + number, self.ports[number].address)
        await settle()

    async def get(self, path: str) -> tuple[int, str]:
        return await http_get(self.pages.address, path)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    with command_environment() as environment:
        launch = FakeLaunch()
        loaded = load(assignments=[f"log.dirs={tmp_path / 'data'}"])
        supervisor = Supervisor(loaded, 2, launch=launch, environment=environment, machine_name="m")
        await supervisor.open()
        supervisor.start()
        await settle()
        pages = AdminPages(supervisor, Endpoint("127.0.0.1", 0), environment.run_blocking)
        await pages.listen()
        world = World(supervisor, pages, launch)
        for port in world.ports:
            await port.server.start("127.0.0.1", 0)
        yield world
        for port in world.ports:
            await port.server.aclose()
        await pages.aclose()
        await supervisor.stop()


async def test_ready_is_when_all_are_ready(world: World) -> None:
    assert await world.get("/healthz") == (200, "ok\n")
    assert await world.get("/readyz") == (503, "broker 1: starting\nbroker 2: starting\n")
    await world.listen(0)
    await world.listen(1)
    ready = "broker 1: ready\nbroker 1: alert: a: b\n"
    assert await world.get("/readyz") == (200, f"{ready}broker 2: ready\nbroker 2: alert: a: b\n")
    world.ports[1].ready = Page(503, b"recovering\n")
    assert await world.get("/readyz") == (503, f"{ready}broker 2: recovering\n")
    world.launch.processes[1].end(KILLED)
    await settle()
    assert await world.get("/readyz") == (
        503,
        f"{ready}broker 2: waiting to be started again\n",
    )


async def test_one_that_does_not_answer_is_not_ready(world: World) -> None:
    await world.listen(0)
    await world.listen(1)
    await world.ports[0].server.aclose()
    status, body = await world.get("/readyz")
    assert status == 503
    assert "broker 1: its admin port does not answer" in body
    # The other one says what there is to say of the cluster.
    assert await world.get("/cluster") == (200, '{"cluster_id": "c"}\n')
    assert (await world.get("/metrics/sum"))[1].splitlines()[-1] == "a_total 2.0"


async def test_metrics_of_all(world: World) -> None:
    await world.listen(0)
    await world.listen(1)
    status, body = await world.get("/metrics")
    assert status == 200
    values = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }
    assert values["a_total", ("broker", "1")] == 2
    assert values["a_total", ("broker", "2")] == 2
    assert values["varve_supervisor_broker_serving", ("broker", "2")] == 1
    assert values["varve_supervisor_broker_scraped", ("broker", "2")] == 1
    assert values["varve_supervisor_broker_restarts_total", ("broker", "2")] == 0
    assert values["process_open_fds", ("broker", "supervisor")] > 0
    assert values[("varve_supervisor_store_revision",)] > 0
    assert (await world.get("/metrics/sum"))[1].splitlines()[-1] == "a_total 4.0"
    world.launch.processes[1].end(KILLED)
    await settle()
    body = (await world.get("/metrics"))[1]
    assert 'varve_supervisor_broker_scraped{broker="2"} 0.0' in body
    assert 'a_total{broker="2"}' not in body


async def test_brokers_and_where_each_is_reached(world: World) -> None:
    await world.listen(0)
    document = json.loads((await world.get("/brokers"))[1])
    assert document[0] == {
        "broker": 1,
        "state": "serving",
        "pid": 100,
        "restarts": 0,
        "listeners": ["PLAINTEXT://127.0.0.1:9092"],
        "admin": world.ports[0].address,
    }
    assert (document[1]["state"], document[1]["admin"]) == ("starting", None)
    assert (await world.get("/cluster"))[0] == 200


async def test_no_broker_answers(world: World) -> None:
    assert (await world.get("/cluster"))[0] == 503
    status, body = await world.get("/metrics")
    assert status == 200
    assert 'varve_supervisor_broker_serving{broker="1"} 0.0' in body


async def test_an_address_that_is_taken(world: World) -> None:
    host, _, port = world.pages.address.rpartition(":")
    second = AdminPages(world.supervisor, Endpoint(host, int(port)), None)  # type: ignore[arg-type]  # never called
    taken = f"cannot listen at admin.listener={host}:{port}: .*in use"
    with pytest.raises(StartupError, match=taken):
        await second.listen()


async def test_it_can_be_switched_off(world: World) -> None:
    off = AdminPages(world.supervisor, None, None)  # type: ignore[arg-type]  # never called
    await off.listen()
    assert off.address == ""
    await off.aclose()
