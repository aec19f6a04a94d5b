"""One broker process for the whole folder, and the line that says which clients ran.

`VARVE_INTEROP_BROKER=kafka` runs the same tests against released Kafka: what fails there is a
mistake of the test.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.kafka_release import KAFKA_VERSION, KafkaRelease, KafkaReleaseError
from bench.node import KafkaNode, OwnedNode, VarveNode
from bench.s3_server import SERVERS
from tests.interop.clients import LIBRARIES, Kcat
from tests.interop.replicated import ReplicatedNode
from tests.interop.tool_server import ToolServer

BROKER = os.environ.get("VARVE_INTEROP_BROKER", "varve")

BROKERS = int(os.environ.get("VARVE_INTEROP_BROKERS", "1"))
"""3: a cluster in the place of one broker, see `tests.interop.replicated`."""

# Rebalances without the three seconds that help only large groups; one partition of offsets less
# to create per test run is enough for what these tests ask.
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
}

# For tests of groups and transactions: what is looked for periodically is found at once, what a
# group may ask for is short enough to wait for.
COORDINATOR_PROPERTIES = {
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "600",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "600",
    "group.share.min.heartbeat.interval.ms": "200",
}

RAN = "client that ran"
KILLS = "brokers killed"


def new_node(directory: Path, properties: dict[str, str] | None = None) -> OwnedNode:
    """A broker of the kind under test, or a cluster of them, not yet started."""
    if BROKERS > 1:
        return ReplicatedNode(BROKER, directory, {**PROPERTIES, **(properties or {})})
    kinds: dict[str, type[OwnedNode]] = {"varve": VarveNode, "kafka": KafkaNode}
    kind = kinds[BROKER]
    return kind(directory, {**PROPERTIES, **(properties or {})})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for found in terminalreporter.stats.values() for report in found]
    properties = [pair for report in reports for pair in getattr(report, "user_properties", ())]
    names = {str(value) for name, value in properties if name == RAN}
    if names:
        listed = ", ".join(sorted(names))
        kills = sum(int(str(value)) for name, value in properties if name == KILLS)
        kind = BROKER if BROKERS == 1 else f"{BROKER} x {BROKERS}, {kills} of them killed"
        terminalreporter.write_line(f"interop: broker {kind}; clients that ran: {listed}")
    passed = [str(report.nodeid) for report in terminalreporter.stats.get("passed", ())]
    tried = [node for node in passed if "test_s3_servers.py" in node]
    if tried:
        ran = [name for name in ("moto", *SERVERS) if any(f"[{name}" in node for node in tried)]
        terminalreporter.write_line(f"interop: S3 servers that ran: {', '.join(ran)}")


@pytest.fixture
def ran(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Note a client for the summary line, in the test's report: that may come from elsewhere."""

    def note(client: str) -> None:
        request.node.user_properties.append((RAN, client))

    return note


def _running(node: OwnedNode) -> Iterator[OwnedNode]:
    """Start, stop; its log is printed when it does not come up or ends badly."""
    node.start()
    yield node
    alive = node.is_running
    tail = node.log_tail()
    code = node.stop()
    assert alive, f"the broker ended during the tests:\n{tail}"
    if BROKER == "varve":
        assert code == 0, f"exit {code} after SIGTERM:\n{node.log_tail()}"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnedNode]:
    """A running broker."""
    yield from _running(new_node(tmp_path_factory.mktemp("broker")))


@pytest.fixture(scope="session")
def coordinators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnedNode]:
    """A running broker whose groups and transactions need no long waits."""
    yield from _running(new_node(tmp_path_factory.mktemp("coordinators"), COORDINATOR_PROPERTIES))


@pytest.fixture(autouse=True)
def one_dies(request: pytest.FixtureRequest) -> Iterator[None]:
    """During each test of other clients on a cluster a broker is killed, and comes back."""
    if BROKERS == 1 or request.node.get_closest_marker("clients") is None:
        yield
        return
    if "coordinators" not in request.fixturenames:
        yield
        return
    node = request.getfixturevalue("coordinators")
    assert isinstance(node, ReplicatedNode)
    before = node.kills
    with node.losing_one():
        yield
    request.node.user_properties.append((KILLS, node.kills - before))


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name of the test's own."""
    return "".join(c if c.isalnum() else "-" for c in request.node.name)[:200].strip("-")


@pytest.fixture
def kafka_release(ran: Callable[[str], None]) -> KafkaRelease:
    """Kafka's own jars; fails with what to install when they cannot run."""
    try:
        release = KafkaRelease.resolve()
    except KafkaReleaseError as error:
        pytest.fail(str(error))
    ran(f"Java client and tools {KAFKA_VERSION}")
    return release


@pytest.fixture(scope="session")
def tool_servers() -> Iterator[list[ToolServer]]:
    """The JVM of Kafka's tools, once some test has asked for it; ends with the session."""
    servers: list[ToolServer] = []
    yield servers
    for server in servers:
        server.close()


@pytest.fixture
def kafka_tools(
    kafka_release: KafkaRelease,
    tool_servers: list[ToolServer],
    tmp_path_factory: pytest.TempPathFactory,
) -> ToolServer:
    """Kafka's own tools, unmodified, all in one JVM."""
    if not tool_servers:
        tool_servers.append(ToolServer(kafka_release, tmp_path_factory.mktemp("tools")))
    return tool_servers[0]


@pytest.fixture
def kcat(ran: Callable[[str], None]) -> Kcat:
    """kcat; fails with what to install when it is absent."""
    client = Kcat()
    client.program()
    ran(f"kcat {client.version}")
    return client


@pytest.fixture(params=LIBRARIES, ids=lambda client: client.name)
def library(request: pytest.FixtureRequest, ran: Callable[[str], None]) -> object:
    """Each Python client library in turn."""
    client = request.param
    ran(f"{client.name} {client.version}")
    return client
