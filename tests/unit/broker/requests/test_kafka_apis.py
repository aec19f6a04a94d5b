"""The router: versions, headers, parking, and what happens to bytes that make no sense."""

import asyncio
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.images.cluster_image import ClusterImage
from broker.handlers import api_versions
from broker.requests.answer import Answer
from broker.requests.kafka_apis import Api, KafkaApis
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.headers import encode_request_header
from protocol.messages import api_versions as api_versions_messages
from protocol.messages import heartbeat as heartbeat_messages
from protocol.messages import list_groups as list_groups_messages
from protocol.messages.api_versions import ApiVersion
from tests.unit.broker.network.harness import Harness


class FakeServices:
    """All the router and these handlers look at."""

    def __init__(self) -> None:
        self.advertised_apis: list[ApiVersion] = []
        self.controller = SimpleNamespace(image=ClusterImage.empty())


def module(**attributes: Any) -> ModuleType:
    made = ModuleType("handler")
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


class World:
    """A connection whose requests go through a real router to handlers of the test."""

    def __init__(self, *modules: ModuleType) -> None:
        self.h = Harness(workers=4)
        self.services = FakeServices()
        self.apis = KafkaApis(
            self.services,  # type: ignore[arg-type]  # why: the handlers here use two fields
            [Api(api_versions), *map(Api, modules)],
            self.h.clock,
        )
        self.services.advertised_apis = self.apis.advertised()
        self.h.channel.connect(self.apis)

    def send(self, key: int, version: int, body: bytes, correlation_id: int = 7) -> None:
        header = encode_request_header(key, version, correlation_id, "client")
        data = header + body
        self.h.receive(len(data).to_bytes(4, "big") + data)

    def answers(self) -> list[bytes]:
        """The bodies sent so far, with their correlation id in front."""
        data, found = bytes(self.h.stream.sent), []
        while data:
            size = int.from_bytes(data[:4], "big")
            found.append(data[4 : 4 + size])
            data = data[4 + size :]
        return found


def heartbeat_module(handle: Any) -> ModuleType:
    return module(API_KEY=ApiKey.HEARTBEAT, VERSIONS=(0, 4), handle=handle)


def heartbeat(version: int) -> bytes:
    message = heartbeat_messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    return heartbeat_messages.encode_request(message, version)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_is_answered_with_response_header_v0(version: int) -> None:
    """No tag byte follows the correlation id, whatever the version (KIP-511)."""
    world = World()
    request = api_versions_messages.ApiVersionsRequest(
        client_software_name="t", client_software_version="1"
    )
    world.send(18, version, api_versions_messages.encode_request(request, version))
    (answer,) = world.answers()
    assert answer[:4] == (7).to_bytes(4, "big")
    response = api_versions_messages.decode_response(memoryview(answer)[4:], version)
    assert [(k.api_key, k.min_version, k.max_version) for k in response.api_keys] == [(18, 0, 4)]


def test_newer_api_versions_is_answered_in_version_0() -> None:
    """UNSUPPORTED_VERSION and our range, so that the client asks again."""
    world = World()
    data = (18).to_bytes(2, "big") + (99).to_bytes(2, "big") + (9).to_bytes(4, "big") + b"\xff\xff"
    world.h.receive(len(data).to_bytes(4, "big") + data)
    (answer,) = world.answers()
    response = api_versions_messages.decode_response(memoryview(answer)[4:], 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(k.api_key, k.max_version) for k in response.api_keys] == [(18, 4)]
    assert not world.h.connection.closed


@pytest.mark.parametrize(("key", "version"), [(12, 9), (77, 0), (-5, 0), (999, 3)])
def test_what_is_not_served_closes_the_connection(key: int, version: int) -> None:
    world = World(heartbeat_module(lambda *_: heartbeat_messages.HeartbeatResponse()))
    data = (
        key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big") + b"\0\0\0\1" + b"\xff\xff"
    )
    world.h.receive(len(data).to_bytes(4, "big") + data)
    assert world.h.connection.closed
    assert world.apis.unsupported == 1


@pytest.mark.parametrize("version", [0, 3, 4])
def test_inline_handler_answers_with_the_right_header(version: int) -> None:
    seen: list[Any] = []

    def handle(services: Any, context: Any, request: Any) -> Any:
        seen.append((context.client_id, context.api_version, request.group_id))
        return heartbeat_messages.HeartbeatResponse(error_code=22)

    world = World(heartbeat_module(handle))
    world.send(12, version, heartbeat(version))
    (answer,) = world.answers()
    assert seen == [("client", version, "g")]
    body = answer[5:] if version >= 4 else answer[4:]
    assert heartbeat_messages.decode_response(memoryview(body), version).error_code == 22


@pytest.mark.parametrize("version", [1, 4])
def test_a_parked_handler_is_answered_when_its_answer_is_given(version: int) -> None:
    """In the order of requests, and counted as long as it took."""
    parked: list[Answer[Any]] = [Answer(), Answer()]
    left = iter(parked)
    world = World(heartbeat_module(lambda *_: next(left).result()))
    world.send(12, version, heartbeat(version), correlation_id=1)
    world.send(12, version, heartbeat(version), correlation_id=2)
    world.h.clock.advance(700)
    parked[1](heartbeat_messages.HeartbeatResponse(error_code=25))
    assert world.answers() == []
    parked[0](heartbeat_messages.HeartbeatResponse(error_code=27))
    parked[0](heartbeat_messages.HeartbeatResponse(error_code=1))
    first, second = world.answers()
    for number, answer, code in ((1, first, 27), (2, second, 25)):
        assert answer[:4] == number.to_bytes(4, "big")
        body = answer[5:] if version >= 4 else answer[4:]
        assert heartbeat_messages.decode_response(memoryview(body), version).error_code == code
    assert world.apis.by_key[12].stats.total_ms == 1400


def test_many_answers_given_in_one_turn_leave_in_one_send() -> None:
    parked: list[Answer[Any]] = [Answer() for _ in range(5)]
    left = iter(parked)
    world = World(heartbeat_module(lambda *_: next(left).result()))
    for number in range(5):
        world.send(12, 4, heartbeat(4), correlation_id=number)

    def give() -> None:
        for answer in reversed(parked):
            answer(heartbeat_messages.HeartbeatResponse())

    before = world.h.stream.sends
    world.h.poller.call_soon(give)
    assert [a[3] for a in world.answers()] == [0, 1, 2, 3, 4]
    assert world.h.stream.sends == before + 1


def test_an_answer_that_cannot_be_encoded_ends_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer: Answer[Any] = Answer()
    world = World(heartbeat_module(lambda *_: answer.result()))
    world.send(12, 4, heartbeat(4))
    answer(heartbeat_messages.HeartbeatResponse(error_code=1 << 20))
    assert world.answers() == []
    assert world.h.connection.closed
    assert "handler failed api=HEARTBEAT version=4 client=client address=" in caplog.text


def test_an_answer_to_a_client_that_left_is_not_even_encoded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer: Answer[Any] = Answer()
    world = World(heartbeat_module(lambda *_: answer.result()))
    world.send(12, 4, heartbeat(4))
    world.h.receive(b"")
    answer(heartbeat_messages.HeartbeatResponse(error_code=1 << 20))
    assert world.answers() == []
    assert caplog.text == ""


@pytest.mark.parametrize("outcome", ["unencodable", "exception", "cancelled"])
def test_a_parked_handler_that_fails_ends_the_connection(outcome: str) -> None:
    """Else its client, and everybody behind it on the connection, would wait for ever."""
    loop = asyncio.new_event_loop()
    future: asyncio.Future[Any] = loop.create_future()
    world = World(heartbeat_module(lambda *_: future))
    world.send(12, 4, heartbeat(4))
    if outcome == "unencodable":
        future.set_result(heartbeat_messages.HeartbeatResponse(error_code=1 << 20))
    elif outcome == "exception":
        future.set_exception(ValueError("ours"))
    else:
        future.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert world.answers() == []
    assert world.h.connection.closed


def test_a_parked_handler_is_answered_when_its_future_is_done() -> None:
    loop = asyncio.new_event_loop()
    future: asyncio.Future[Any] = loop.create_future()
    world = World(heartbeat_module(lambda *_: future))
    world.send(12, 1, heartbeat(1))
    assert world.answers() == []
    future.set_result(heartbeat_messages.HeartbeatResponse(error_code=27))
    loop.run_until_complete(asyncio.sleep(0))
    assert len(world.answers()) == 1
    loop.close()


def test_a_client_that_leaves_cancels_its_parked_request() -> None:
    loop = asyncio.new_event_loop()
    future: asyncio.Future[Any] = loop.create_future()
    world = World(heartbeat_module(lambda *_: future))
    world.send(12, 1, heartbeat(1))
    world.h.receive(b"")
    assert future.cancelled()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


async def test_worker_handlers_run_as_coroutines_and_keep_the_order() -> None:
    gate = asyncio.Event()

    async def slow(services: Any, context: Any, request: Any) -> Any:
        await gate.wait()
        return list_groups_messages.ListGroupsResponse()

    world = World(
        module(API_KEY=ApiKey.LIST_GROUPS, VERSIONS=(0, 5), handle=slow),
        heartbeat_module(lambda *_: heartbeat_messages.HeartbeatResponse()),
    )
    body = list_groups_messages.encode_request(list_groups_messages.ListGroupsRequest(), 2)
    world.send(16, 2, body, correlation_id=1)
    world.send(12, 1, heartbeat(1), correlation_id=2)
    await asyncio.sleep(0)
    assert world.answers() == []
    gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert [a[:4] for a in world.answers()] == [(1).to_bytes(4, "big"), (2).to_bytes(4, "big")]


def test_an_api_error_becomes_the_answers_error_code() -> None:
    def refuse(*_: Any) -> Any:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    world = World(heartbeat_module(refuse))
    world.send(12, 1, heartbeat(1))
    (answer,) = world.answers()
    response = heartbeat_messages.decode_response(memoryview(answer)[4:], 1)
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_bug_in_a_handler_ends_one_connection_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    world = World(heartbeat_module(broken))
    world.send(12, 1, heartbeat(1))
    assert world.h.connection.closed
    assert "handler failed" in caplog.text


def test_bytes_that_do_not_decode_close_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(heartbeat_module(lambda *_: heartbeat_messages.HeartbeatResponse()))
    world.send(12, 4, b"\xff\xff\xff")
    assert world.h.connection.closed
    assert world.h.closed[0] is not None
    assert "malformed" in world.h.closed[0]
    assert world.apis.malformed == 1
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("cut", range(1, 14))
def test_truncated_headers_close(cut: int) -> None:
    world = World(heartbeat_module(lambda *_: heartbeat_messages.HeartbeatResponse()))
    data = (encode_request_header(12, 4, 1, "client") + heartbeat(4))[: 8 + cut]
    world.h.receive(len(data).to_bytes(4, "big") + data)
    assert world.h.connection.closed


HEADER = bytes.fromhex("000c000400000007" + "0002") + b"me" + b"\0"
"""Of Heartbeat 4, with a tag section."""


def refusal(frame: bytes) -> str | None:
    """Why a frame closes its connection; None when it does not."""
    world = World(heartbeat_module(lambda *_: heartbeat_messages.HeartbeatResponse()))
    world.apis.handle(world.h.connection, memoryview(bytearray(frame)))
    return world.h.closed[0] if world.h.closed else None


@pytest.mark.parametrize("size", range(len(HEADER)))
def test_a_header_that_is_cut_off_is_malformed_at_every_byte(size: int) -> None:
    """Frames of less than 8 bytes do not come here, and do no harm."""
    assert "malformed" in str(refusal(HEADER[:size]))


@pytest.mark.parametrize("tail", ["7fff", "000461", "0000ffffffffff", "000001", "00000100ff0f"])
def test_a_malformed_client_id_or_tag_section_closes(tail: str) -> None:
    """A length beyond the end, false varints, counts and sizes."""
    assert "malformed" in str(refusal(bytes.fromhex("000c000400000007" + tail)))


def test_a_client_id_that_is_not_utf8_is_taken() -> None:
    """C clients send the bytes that the application has set, in whatever encoding."""
    world = World(heartbeat_module(lambda *_: heartbeat_messages.HeartbeatResponse()))
    head = bytes.fromhex("000c000000000007" + "0003") + b"M\xfc1"
    world.apis.handle(world.h.connection, memoryview(bytearray(head + heartbeat(0))))
    assert not world.h.closed
    assert world.h.connection.client_id == "M\N{REPLACEMENT CHARACTER}1"


def test_a_client_id_that_begins_as_the_one_before_and_is_cut_off_closes() -> None:
    """Also in a version without tags, where nothing behind the header has to be there."""
    world = World(heartbeat_module(lambda *_: heartbeat_messages.HeartbeatResponse()))
    world.send(12, 1, heartbeat(1))
    assert not world.h.closed
    for frame in ("0012000000000007" + "7fff", "000c000100000007" + "7fff"):
        world = World(heartbeat_module(lambda *_: heartbeat_messages.HeartbeatResponse()))
        world.send(12, 1, heartbeat(1))
        data = bytes.fromhex(frame) + b"client"
        world.h.receive(len(data).to_bytes(4, "big") + data)
        assert "client id is cut off" in str(world.h.closed[0])


def test_unknown_tags_in_a_request_header_are_skipped() -> None:
    """KIP-482: a newer client may send some."""
    tags = bytes.fromhex("02" + "0001aa" + "8101" + "02bbbb")
    assert refusal(HEADER[:-1] + tags + heartbeat(4)) is None


@given(st.binary(max_size=64))
def test_random_bytes_close_a_connection_or_are_answered(data: bytes) -> None:
    """Nothing is raised in the event loop."""
    refusal(b"\0\x0c\0\4" + data)
    refusal(data)


@pytest.mark.parametrize("is_refused", [True, False])
async def test_a_handler_may_answer_before_a_request_is_forwarded(is_refused: bool) -> None:
    """What it sends on is answered by the controller, or here when this broker has become it."""
    handled: list[object] = []

    async def handle(_: object, __: object, request: object) -> Any:
        handled.append(request)
        return heartbeat_messages.HeartbeatResponse(error_code=1)

    async def forward(_: object, request: object, send: Any) -> Any:
        return heartbeat_messages.HeartbeatResponse(error_code=2) if is_refused else await send("r")

    class Channel:
        is_here = False

        async def settle(self, *, unanswered: bool = False) -> bool:
            return True

        async def forward(self, *_: object, **__: object) -> None:
            return None

    class Codec:
        @staticmethod
        def encode_request(*_: object) -> bytes:
            return b""

        encode_response = staticmethod(heartbeat_messages.encode_response)
        decode_request = staticmethod(heartbeat_messages.decode_request)

    made = heartbeat_module(handle)
    made.forward = forward  # type: ignore[attr-defined]  # why: a handler's module
    made.FORWARDED = True  # type: ignore[attr-defined]  # why: a handler's module
    world = World(made)
    world.services.channel = Channel()  # type: ignore[attr-defined]  # why: what the router asks
    world.apis.by_key[12].messages = Codec
    world.send(12, 4, heartbeat(4))
    for _ in range(10):
        await asyncio.sleep(0)
    (answer,) = world.answers()
    response = heartbeat_messages.decode_response(memoryview(answer)[5:], 4)
    assert response.error_code == (2 if is_refused else 1)
    assert bool(handled) is not is_refused


async def test_a_controller_that_may_be_none_any_more_answers_nothing() -> None:
    """Its lease is over and the store cannot be read: what it does not know may be there."""
    handled: list[object] = []

    async def handle(_: object, __: object, request: object) -> Any:
        handled.append(request)

    class Channel:
        is_here = True

        async def settle(self) -> bool:
            return False

    made = heartbeat_module(handle)
    made.FORWARDED = True  # type: ignore[attr-defined]  # why: a handler's module
    world = World(made)
    world.services.channel = Channel()  # type: ignore[attr-defined]  # why: what the router asks
    world.send(12, 4, heartbeat(4))
    for _ in range(10):
        await asyncio.sleep(0)
    assert handled == []
    assert world.h.closed == ["the metadata store cannot be read"]


async def test_a_broker_that_finds_no_controller_and_no_store_answers_nothing() -> None:
    """What it does not know may be there: a topic that was made since it was cut off."""
    handled: list[object] = []

    async def handle(_: object, __: object, request: object) -> Any:
        handled.append(request)

    class Channel:
        is_here = False

        async def settle(self, *, unanswered: bool = False) -> bool:
            return not unanswered

        async def forward(self, *_: object, **__: object) -> None:
            return None

    made = heartbeat_module(handle)
    made.FORWARDED = True  # type: ignore[attr-defined]  # why: a handler's module
    world = World(made)
    world.services.channel = Channel()  # type: ignore[attr-defined]  # why: what the router asks
    world.apis.by_key[12].messages = heartbeat_messages
    world.send(12, 4, heartbeat(4))
    for _ in range(10):
        await asyncio.sleep(0)
    assert handled == []
    assert world.h.closed == ["the metadata store cannot be read"]
