"""The process's end: answers every call once, survives what calls do, ends with its connection."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from tests.fakes.tiered.scripted_tier import FakeTier
from tests.fakes.timer import ManualTimer
from tests.unit.tiered.worker.turns import settled, until
from tiered.errors import ObjectNotFoundError, StoreDeniedError
from tiered.tier import Tier
from tiered.worker import service as service_module
from tiered.worker.connection import MessageConnection
from tiered.worker.frames import FRAME_SIZE_MAX, VERSION, Kind, Message
from tiered.worker.service import CANCEL_MS, TierService


class Broker:
    """The other end, by hand."""

    def __init__(self) -> None:
        self.tier = FakeTier()
        self.timer = ManualTimer()
        self.hellos: list[Mapping[str, Any]] = []
        self.open_error: Exception | None = None
        self.answers: list[Message] = []
        self.reasons: list[str] = []
        self.service = TierService(self.open_tier, timer=self.timer, pid=7)
        self.theirs = MessageConnection(self.service.on_message, self.service.on_lost)
        self.ours = MessageConnection(self.answers.append, self.reasons.append)

    async def open_tier(self, hello: Mapping[str, Any]) -> Tier:
        self.hellos.append(hello)
        await asyncio.sleep(0)
        if self.open_error is not None:
            raise self.open_error
        return self.tier

    async def connect(self) -> None:
        self.service.serve(self.theirs)
        for end, sock in zip((self.ours, self.theirs), socket.socketpair(), strict=True):
            sock.setblocking(False)
            await end.open(sock)

    async def hello(self) -> None:
        self.ours.send_now(Kind.HELLO, 0, {"version": VERSION, "settings": {}})
        await until(lambda: len(self.answers) == 2)
        self.answers.clear()

    def call(self, number: int, method: str, *arguments: Any, data: bytes = b"") -> None:
        fields = {"method": method, "arguments": list(arguments)}
        self.ours.send_now(Kind.CALL, number, fields)

    async def answer(self, number: int) -> Message:
        await until(lambda: any(found.id == number for found in self.answers))
        (found,) = (found for found in self.answers if found.id == number)
        return found


@pytest.fixture
async def connected() -> AsyncIterator[Broker]:
    broker = Broker()
    await broker.connect()
    yield broker
    broker.ours.end("over")
    await until(lambda: broker.theirs.lost)
    await broker.service.close()
    await settled()


@pytest.fixture
async def broker(connected: Broker) -> Broker:
    await connected.hello()
    return connected


async def test_hello_opens_the_tier_and_is_answered(connected: Broker) -> None:
    connected.ours.send_now(Kind.HELLO, 0, {"version": VERSION, "settings": {"a": 1}})
    await until(lambda: len(connected.answers) == 2)
    hello, statistics = connected.answers
    assert (hello.kind, hello.fields["version"], hello.fields["pid"]) == (Kind.HELLO, VERSION, 7)
    assert (statistics.kind, statistics.id) == (Kind.STATISTICS, 0)
    assert statistics.fields["counters"]["process"]["state"] == "SERVING"
    assert connected.hellos[0]["settings"] == {"a": 1}


@pytest.mark.parametrize("why", ["version", "settings"])
async def test_that_it_cannot_start_is_told_and_is_the_end(connected: Broker, why: str) -> None:
    connected.open_error = StoreDeniedError("no such key id")
    version = VERSION + 1 if why == "version" else VERSION
    connected.ours.send_now(Kind.HELLO, 0, {"version": version, "settings": {}})
    await until(lambda: bool(connected.reasons))
    (problem,) = connected.answers
    assert (problem.kind, problem.id) == (Kind.ERROR, 0)
    wanted = "speaks version" if why == "version" else "no such key id"
    assert wanted in problem.fields["error"]["text"]
    assert await connected.service.ended() == "it cannot start"


async def test_calls_run_side_by_side(broker: Broker) -> None:
    gate = broker.tier.gate("get_object")
    gate.close()
    broker.tier.objects["k"] = b"v"
    broker.call(1, "get_object", "k")
    broker.call(2, "get_object", "k")
    broker.call(3, "list_objects", "", None)
    assert (await broker.answer(3)).kind is Kind.RESULT
    assert broker.service.calls_under_way == 2
    gate.open()
    assert [(await broker.answer(n)).data for n in (1, 2)] == [b"v", b"v"]
    assert broker.service.calls_under_way == 0


async def test_expected_error_is_the_answer(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.call(1, "get_object", "k")
    answer = await broker.answer(1)
    assert answer.kind is Kind.ERROR
    assert answer.fields["error"]["type"] == ObjectNotFoundError.__name__
    assert caplog.records == []


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), RecursionError(), MemoryError()])
async def test_unexpected_error_is_answered_and_logged_and_not_the_end(
    broker: Broker, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    broker.tier.failures["get_object"] = error
    broker.call(1, "get_object", "k")
    answer = await broker.answer(1)
    assert answer.fields["error"]["text"].startswith(f"unexpected {type(error).__name__}")
    assert "method=get_object" in caplog.text
    broker.call(2, "list_objects", "", None)
    assert (await broker.answer(2)).kind is Kind.RESULT


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("close", []), ("statistics", []), ("nonsense", []), ("fetch_chunk", [1]), ([], [])],
)
async def test_call_that_is_none_is_answered_with_an_error(
    broker: Broker, method: Any, arguments: list[Any]
) -> None:
    broker.call(1, method, *arguments)
    assert (await broker.answer(1)).kind is Kind.ERROR
    assert broker.tier.calls == []
    assert not broker.tier.closed


async def test_cancel_stops_the_call_and_is_answered(broker: Broker) -> None:
    gate = broker.tier.gate("get_object")
    gate.close()
    broker.call(1, "get_object", "k")
    await until(lambda: gate.waiting == 1)
    broker.ours.send_now(Kind.CANCEL, 1)
    assert "cancelled" in (await broker.answer(1)).fields["error"]["text"]
    assert (gate.waiting, broker.tier.ended["cancelled"]) == (0, 1)
    assert broker.service.statistics()["process"]["calls_cancelled"] == 1


async def test_cancel_before_the_first_step_is_answered(broker: Broker) -> None:
    """Call and cancel in one piece: the task never begins."""
    broker.call(1, "get_object", "k")
    broker.ours.send_now(Kind.CANCEL, 1)
    await broker.answer(1)
    assert broker.tier.calls == []
    assert broker.service.calls_under_way == 0


async def test_cancel_of_what_is_answered_or_unknown_is_nothing(broker: Broker) -> None:
    broker.call(1, "list_objects", "", None)
    await broker.answer(1)
    broker.ours.send_now(Kind.CANCEL, 1)
    broker.ours.send_now(Kind.CANCEL, 99)
    broker.call(2, "list_objects", "", None)
    assert (await broker.answer(2)).kind is Kind.RESULT


async def test_call_that_swallows_its_cancellation_is_cancelled_again(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    swallowed = 0

    async def get_object(key: str) -> bytes:
        nonlocal swallowed
        while swallowed < 2:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                swallowed += 1
        return b"after all"

    broker.tier.get_object = get_object  # type: ignore[method-assign]  # a stubborn one
    broker.call(1, "get_object", "k")
    await until(lambda: broker.service.calls_under_way == 1)
    await settled()
    broker.ours.send_now(Kind.CANCEL, 1)
    await until(lambda: swallowed == 1)
    broker.timer.advance(CANCEL_MS - 1)
    await settled()
    assert swallowed == 1
    broker.timer.advance(1)
    assert (await broker.answer(1)).data == b"after all"
    assert "ignores its cancellation call=1" in caplog.text
    broker.timer.advance(10 * CANCEL_MS)
    assert broker.timer.pending == 0


async def test_call_that_goes_on_after_its_cancellation_is_told_of_once(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that hangs keeps it for as long as it does."""
    swallowed = 0

    async def get_object(key: str) -> bytes:
        nonlocal swallowed
        while swallowed < 10:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                swallowed += 1
        return b"after all"

    broker.tier.get_object = get_object  # type: ignore[method-assign]  # a stubborn one
    broker.call(1, "get_object", "k")
    await until(lambda: broker.service.calls_under_way == 1)
    await settled()
    broker.ours.send_now(Kind.CANCEL, 1)
    for times in range(1, 10):
        await until(lambda times=times: swallowed == times)  # type: ignore[misc]  # a lambda's default
        broker.timer.advance(CANCEL_MS)
    assert (await broker.answer(1)).data == b"after all"
    assert caplog.text.count("ignores its cancellation") == 1


async def test_calls_are_bounded(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "CALLS_MAX", 2)
    broker.tier.gate("get_object").close()
    for number in (1, 2, 3):
        broker.call(number, "get_object", "k")
    assert "2 calls are under way" in (await broker.answer(3)).fields["error"]["text"]
    assert len(broker.tier.calls) == 2


async def test_ping_is_answered_with_counters(broker: Broker) -> None:
    broker.ours.send_now(Kind.PING, 5)
    answer = await broker.answer(5)
    assert answer.kind is Kind.STATISTICS
    assert answer.fields["counters"]["fake"] == {"calls": 0}


async def test_counters_that_cannot_be_told_do_not_look_like_a_hang(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.tier.statistics = lambda: {"a": object()}  # type: ignore[method-assign]  # no JSON
    broker.ours.send_now(Kind.PING, 5)
    assert (await broker.answer(5)).fields["counters"] == {}
    assert "tier process counters cannot be sent" in caplog.text


async def test_result_that_is_too_large_is_an_error(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.tier.objects["k"] = bytes(1000)
    monkeypatch.setattr("tiered.worker.frames.DATA_SIZE_MAX", 999)
    broker.call(1, "get_object", "k")
    assert "too large" in (await broker.answer(1)).fields["error"]["text"]


@pytest.mark.parametrize(
    "kind", [Kind.HELLO, Kind.RESULT, Kind.ERROR, Kind.STATISTICS], ids=lambda kind: kind.value
)
async def test_what_a_broker_never_says_ends_it(broker: Broker, kind: Kind) -> None:
    broker.ours.send_now(kind, 3, {"version": VERSION})
    assert "unexpected" in await broker.service.ended()


async def test_call_before_hello_ends_it(connected: Broker) -> None:
    connected.call(1, "list_objects", "", None)
    assert "unexpected" in await connected.service.ended()


async def test_same_id_twice_ends_it(broker: Broker) -> None:
    broker.tier.gate("get_object").close()
    broker.call(1, "get_object", "k")
    broker.call(1, "get_object", "k")
    assert "call 1 twice" in await broker.service.ended()


async def test_end_of_the_connection_cancels_everything(broker: Broker) -> None:
    gate = broker.tier.gate("get_object")
    gate.close()
    for number in (1, 2, 3):
        broker.call(number, "get_object", "k")
    await until(lambda: gate.waiting == 3)
    broker.ours.end("killed")
    await broker.service.ended()
    await broker.service.close()
    assert (gate.waiting, broker.tier.ended["cancelled"], broker.tier.closed) == (0, 3, True)


async def test_end_while_a_large_result_is_sent(broker: Broker) -> None:
    """The broker does not read: the task waits to send, and ends with the connection."""
    broker.tier.objects["k"] = bytes(16 * FRAME_SIZE_MAX)
    transport = broker.ours._transport
    assert transport is not None
    transport.pause_reading()
    broker.call(1, "get_object", "k")
    await until(lambda: broker.tier.ended["done"] == 1)
    await settled(50)
    assert broker.service.calls_under_way == 1
    broker.ours.end("killed")
    await broker.service.ended()
    await broker.service.close()
    assert broker.service.calls_under_way == 0


async def test_finish_lets_calls_end_and_takes_no_more(broker: Broker) -> None:
    gate = broker.tier.gate("get_object")
    gate.close()
    broker.tier.objects["k"] = b"v"
    broker.call(1, "get_object", "k")
    await until(lambda: gate.waiting == 1)
    finishing = asyncio.create_task(broker.service.finish(5_000))
    await until(lambda: broker.service.statistics()["process"]["state"] == "DRAINING")
    broker.call(2, "get_object", "k")
    assert "about to end" in (await broker.answer(2)).fields["error"]["text"]
    assert not finishing.done()
    gate.open()
    assert (await broker.answer(1)).data == b"v"
    await finishing
    await until(lambda: bool(broker.reasons))


async def test_finish_ends_in_time(broker: Broker) -> None:
    gate = broker.tier.gate("get_object")
    gate.close()
    broker.call(1, "get_object", "k")
    await until(lambda: gate.waiting == 1)
    finishing = asyncio.create_task(broker.service.finish(5_000))
    await settled()
    broker.timer.advance(4_999)
    await settled()
    assert not finishing.done()
    broker.timer.advance(1)
    await finishing
    await broker.service.close()
    assert gate.waiting == 0
