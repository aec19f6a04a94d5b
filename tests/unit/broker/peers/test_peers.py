"""Requests to peers go where the image says that they are."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.peers.errors import PeerUnavailableError
from broker.peers.peers import Peers
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    decode_request,
    encode_response,
)
from protocol.primitives import skip_tagged_fields
from tests.fakes.network.peers import PeerWorld, SentRequest, answer_to, requests_of

VERSION = 3
REQUEST = AlterPartitionRequest(broker_id=1, broker_epoch=5)
ANSWER = AlterPartitionResponse(error_code=int(ErrorCode.STALE_BROKER_EPOCH))


@dataclass
class At:
    host: str
    port: int


@dataclass
class Broker:
    """As a `BrokerImage`."""

    node_id: int
    epoch: int = 1
    listeners: Mapping[str, At] = field(default_factory=lambda: {"PLAINTEXT": At("h", 1)})


class World(PeerWorld):
    def __init__(self, listener: str | None = None) -> None:
        super().__init__()
        self.peers = Peers(1, listener, self.resources)

    def update(self, *brokers: Broker) -> None:
        self.peers.update({broker.node_id: broker for broker in brokers})

    def request(self, node_id: int = 2, use: str = "control") -> "asyncio.Future[Any]":
        return self.peers.request(node_id, REQUEST, VERSION, timeout_ms=1000, use=use)


def body_of(request: SentRequest) -> bytes:
    """Behind the header: client id and tags."""
    size = int.from_bytes(request.rest[:2], "big")
    assert request.rest[2 : 2 + size] == b"broker-1"
    return request.rest[skip_tagged_fields(request.rest, 2 + size) :]


async def test_request_is_encoded_and_its_answer_decoded() -> None:
    """By the generated codecs."""
    world = World()
    world.update(Broker(1), Broker(2))
    future = world.request()
    stream = world.connector.connects[0].accept()
    (request,) = requests_of(stream)
    assert decode_request(body_of(request), VERSION) == REQUEST
    world.receive(stream, answer_to(request, encode_response(ANSWER, VERSION)))
    assert await future == ANSWER


async def test_malformed_answer_is_an_unknown_outcome() -> None:
    """The caller never sees a decoder's error."""
    world = World()
    world.update(Broker(2))
    future = world.request()
    stream = world.connector.connects[0].accept()
    world.receive(stream, answer_to(requests_of(stream)[0], b""))
    with pytest.raises(PeerUnavailableError, match="malformed") as raised:
        await future
    assert (raised.value.node_id, raised.value.sent) == (2, True)


async def test_answer_to_a_cancelled_request_is_dropped() -> None:
    """Its caller has gone; the connection goes on."""
    world = World()
    world.update(Broker(2))
    gone, stays = world.request(), world.request()
    stream = world.connector.connects[0].accept()
    gone.cancel()
    for request in requests_of(stream):
        world.receive(stream, answer_to(request, encode_response(ANSWER, VERSION)))
    assert await stays == ANSWER


async def test_each_use_has_a_connection_of_its_own() -> None:
    """What waits long at the peer does not hold up what does not."""
    world = World()
    world.update(Broker(2), Broker(3))
    futures = [world.request(2, "a"), world.request(2, "b"), world.request(3, "a")]
    futures.append(world.request(2, "a"))
    assert len(world.connector.connects) == 3
    assert world.peers.requests == 4
    world.connector.connects[0].accept()
    assert world.peers.open_connections == 1
    world.peers.close()
    for future in futures:
        with pytest.raises(PeerUnavailableError):
            await future
    assert world.peers.open_connections == 0


@pytest.mark.parametrize("node_id", [1, 9])
async def test_unknown_broker_and_the_own_one_are_no_peers(node_id: int) -> None:
    """Nothing is connected."""
    world = World()
    world.update(Broker(1), Broker(2))
    with pytest.raises(PeerUnavailableError) as raised:
        await world.request(node_id)
    assert not raised.value.sent
    assert world.connector.connects == []


@pytest.mark.parametrize(
    ("listener", "listeners", "port"),
    [
        (None, {"A": At("h", 1), "PLAINTEXT": At("h", 2)}, 2),
        (None, {"A": At("h", 1), "B": At("h", 2)}, 1),
        ("B", {"A": At("h", 1), "B": At("h", 2)}, 2),
        ("B", {"A": At("h", 1)}, None),
    ],
)
async def test_peers_are_called_on_the_inter_broker_listener(
    listener: str | None, listeners: dict[str, At], port: int | None
) -> None:
    """`inter.broker.listener.name`; PLAINTEXT without it, or the only one there is."""
    world = World(listener)
    world.update(Broker(2, listeners=listeners))
    future = world.request()
    assert [connect.port for connect in world.connector.connects] == ([port] if port else [])
    future.cancel()


async def test_connections_follow_the_image() -> None:
    """Another epoch is another process; a broker that left is not called again."""
    world = World()
    world.update(Broker(2))
    future = world.request()
    stream = world.connector.connects[0].accept()
    world.update(Broker(2))
    assert not stream.closed
    world.update(Broker(2, epoch=2))
    assert stream.closed
    with pytest.raises(PeerUnavailableError):
        await future
    waits = world.request()
    world.update()
    with pytest.raises(PeerUnavailableError) as raised:
        await waits
    assert not raised.value.sent


async def test_kept_open_use_connects_to_every_peer() -> None:
    """Also to brokers that come later, and again when one ends: ends are noticed at once."""
    world = World()
    world.update(Broker(1), Broker(2))
    world.peers.keep_open("control")
    assert len(world.connector.connects) == 1
    world.update(Broker(1), Broker(2), Broker(3))
    assert len(world.connector.connects) == 2
    world.receive(world.connector.connects[0].accept(), b"")
    world.timer.advance(20)
    assert len(world.connector.connects) == 3
