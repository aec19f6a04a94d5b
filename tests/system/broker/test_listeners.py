"""Where clients are sent."""

import pytest

from config.listeners import Listener
from tests.fakes.network.client import Client, http_get
from tests.system.conftest import Connect, StartNode

pytestmark = pytest.mark.quick

LISTENERS = (Listener("PLAINTEXT", "127.0.0.1", 0), Listener("OTHER", "127.0.0.1", 0))
PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "OTHER": "PLAINTEXT"}


async def told(client: Client) -> tuple[str, int]:
    """Host and port of the one broker, as Metadata tells them."""
    (broker,) = (await client.metadata()).brokers
    return broker.host, broker.port


async def test_each_listener_tells_its_own_address(start_node: StartNode, connect: Connect) -> None:
    """A client inside a network is not sent to the address for those outside; 0 is a real port."""
    node = await start_node(listeners=LISTENERS, listener_security_protocol_map=PROTOCOLS)
    ports = {name: port for name, _, port in node.broker.addresses}
    assert len(set(ports.values())) == 2
    for port in ports.values():
        assert await told(await connect("127.0.0.1", port)) == ("127.0.0.1", port)


async def test_advertised_addresses_stand_in_for_bound_ones(
    start_node: StartNode, connect: Connect
) -> None:
    node = await start_node(
        listeners=LISTENERS,
        listener_security_protocol_map=PROTOCOLS,
        advertised_listeners=(
            Listener("PLAINTEXT", "inside.example", 1234),
            Listener("OTHER", "outside.example", 4321),
        ),
    )
    ports = {name: port for name, _, port in node.broker.addresses}
    inside = await connect("127.0.0.1", ports["PLAINTEXT"])
    outside = await connect("127.0.0.1", ports["OTHER"])
    assert await told(inside) == ("inside.example", 1234)
    assert await told(outside) == ("outside.example", 4321)


async def test_listeners_share_the_topics(start_node: StartNode, connect: Connect) -> None:
    node = await start_node(listeners=LISTENERS, listener_security_protocol_map=PROTOCOLS)
    one, other = [await connect("127.0.0.1", port) for _, _, port in node.broker.addresses]
    await one.create_topic("t")
    await one.produce("t", b"v")
    assert [record.value for record in await other.read_all("t")] == [b"v"]
    metrics = await node.metrics()
    name = "kafka_server_socketservermetrics_connection_count"
    for listener in ("PLAINTEXT", "OTHER"):
        open_ = [
            v
            for (n, labels), v in metrics.items()
            if n == name and ("listener", listener) in labels
        ]
        assert sum(open_) == 1


async def test_the_admin_port_can_be_left_out(start_node: StartNode, connect: Connect) -> None:
    node = await start_node(admin_listener=None, wait_until_ready=False)
    assert node.broker.admin_address is None
    client = await connect("127.0.0.1", node.port)
    await client.create_topic("t")
    assert await client.produce("t", b"v") == 0


async def test_the_admin_port_goes_last(start_node: StartNode) -> None:
    """While a broker stops, a probe learns that it does; afterwards nobody answers."""
    node = await start_node()
    address = node.broker.admin_address
    assert address is not None
    node.broker.health.is_stopping = True
    assert await http_get(address, "/readyz") == (503, "stopping\n")
    assert (await http_get(address, "/healthz"))[0] == 200
    node.broker.health.is_stopping = False
