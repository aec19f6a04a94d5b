"""One life of the process: hello, calls, pings, and every way it can end."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from config.tier import TierConfig
from tests.fakes.tiered.in_loop_processes import FakeProcess, FakeProcesses
from tests.fakes.timer import ManualTimer
from tests.unit.tiered.worker.turns import settled, until
from tiered.worker.frames import VERSION, Kind, Message
from tiered.worker.session import (
    KILL_AFTER_MS,
    PING_MS,
    PINGS_MISSED_MAX,
    REAP_MS,
    TERM_AFTER_MS,
    Session,
)


class Life:
    """A session, its process, and what it told."""

    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.processes = FakeProcesses()
        self.told: list[str] = []

    def begin(self) -> None:
        started = self.processes.start()
        self.session = Session(
            started,
            {"version": VERSION, "settings": TierConfig().model_dump(mode="json")},
            timer=self.timer,
            clock=self.timer.clock,
            on_serving=lambda _: self.told.append("serving"),
            on_ended=lambda _, reason: self.told.append(reason),
            on_reaped=lambda _: self.told.append("reaped"),
        )
        self.session.open()

    @property
    def process(self) -> FakeProcess:
        return self.processes.newest

    async def serving(self) -> None:
        self.begin()
        await until(lambda: self.told == ["serving"])

    async def call(self, method: str = "get_object") -> "asyncio.Future[Message | None]":
        number, answer = self.session.call(method, ["k"], b"")
        await self.session.send(number, method, ["k"], b"")
        return answer


@pytest.fixture
async def life() -> AsyncIterator[Life]:
    life = Life()
    yield life
    life.session.end("test over")
    life.timer.advance(REAP_MS)
    await until(lambda: life.session.reaped)
    await settled()


async def test_hello_then_calls(life: Life) -> None:
    await life.serving()
    assert life.process.hello["version"] == VERSION
    answer = await life.call()
    assert life.session.calls_under_way == 1
    message = await answer
    assert message is not None
    assert message.kind is Kind.ERROR
    assert life.session.calls_under_way == 0


async def test_pings_bring_counters(life: Life) -> None:
    await life.serving()
    await (await life.call())
    for _ in range(3 * PINGS_MISSED_MAX):
        life.timer.advance(PING_MS)
        await settled()
    assert life.session.counters["fake"] == {"calls": 1}
    assert life.session.ended is None


async def test_process_that_hangs_is_killed_and_callers_are_told(life: Life) -> None:
    await life.serving()
    life.process.hang()
    answer = await life.call()
    for _ in range(PINGS_MISSED_MAX):
        life.timer.advance(PING_MS)
        await settled()
        assert not answer.done()
    life.timer.advance(PING_MS)
    assert await answer is None
    assert life.process.signals == ["KILL"]
    assert life.told == ["serving", "it has not answered for 5 s", "reaped"]
    assert life.session.exit_status == -9
    assert life.processes.logs[0].closed


async def test_suspended_machine_is_no_hang(life: Life) -> None:
    """An hour passes between two turns: one turn without a word, not five."""
    await life.serving()
    for _ in range(3):
        life.timer.clock.advance(3_600_000)
        life.timer.advance(0)
        await settled()
    assert life.session.ended is None


async def test_process_that_never_says_hello_is_killed(life: Life) -> None:
    life.begin()
    await until(lambda: life.process.connection._transport is not None)
    life.process.hang()
    for _ in range(4 * PINGS_MISSED_MAX + 1):
        life.timer.advance(PING_MS)
        await settled()
    assert life.told == ["it has not answered for 20 s", "reaped"]


async def test_process_that_cannot_start_says_why(life: Life) -> None:
    life.processes.start_error = ValueError("no region")
    life.begin()
    await until(lambda: "reaped" in life.told or (life.timer.pending > 0 and bool(life.told)))
    assert life.told[0] == "it cannot start: unexpected ValueError: no region"


async def test_killed_process_is_noticed_by_its_socket(life: Life) -> None:
    await life.serving()
    life.process.tier.gate("get_object").close()  # type: ignore[attr-defined]  # the fake tier's
    answers = [await life.call() for _ in range(3)]
    life.process.kill()
    assert [await answer for answer in answers] == [None] * 3
    assert life.told == ["serving", "the connection was closed", "reaped"]
    assert life.session.calls_under_way == 0


async def test_call_after_the_end_is_answered_at_once(life: Life) -> None:
    await life.serving()
    life.session.end("enough")
    life.session.end("again")
    assert await (await life.call()) is None
    assert life.told == ["serving", "enough", "reaped"]


@pytest.mark.parametrize(
    ("kind", "number"),
    [(Kind.RESULT, 77), (Kind.ERROR, 77), (Kind.HELLO, 0), (Kind.CALL, 1), (Kind.PING, 1)],
)
async def test_what_a_process_never_says_ends_it(life: Life, kind: Kind, number: int) -> None:
    await life.serving()
    life.process.connection.send_now(kind, number, {"version": VERSION})
    await until(lambda: life.session.ended is not None)
    assert "unexpected" in life.told[1]
    assert life.process.signals == ["KILL"]


async def test_process_of_another_version_is_refused(life: Life) -> None:
    life.begin()
    process = life.process.connection
    process._on_message = lambda _: process.send_now(Kind.HELLO, 0, {"version": VERSION + 1})
    await until(lambda: life.session.ended is not None)
    assert "version 2" in life.told[0]


async def test_close_lets_it_end_by_itself(life: Life) -> None:
    await life.serving()
    life.session.close()
    await until(lambda: life.process.status is not None)
    life.timer.advance(REAP_MS)
    assert life.told == ["serving", "it was stopped", "reaped"]
    assert (life.process.signals, life.session.exit_status) == ([], 0)
    life.timer.advance(TERM_AFTER_MS + KILL_AFTER_MS)
    assert life.process.signals == []


async def test_close_terminates_and_kills_one_that_stays(life: Life) -> None:
    await life.serving()
    life.process.ignores_end = life.process.ignores_terminate = True
    life.session.close()
    await settled()
    life.timer.advance(TERM_AFTER_MS - 1)
    assert life.process.signals == []
    life.timer.advance(1)
    assert life.process.signals == ["TERM"]
    life.timer.advance(KILL_AFTER_MS)
    life.timer.advance(REAP_MS)
    assert life.process.signals == ["TERM", "KILL"]
    assert life.session.reaped


async def test_end_before_it_is_connected_leaves_no_socket(life: Life) -> None:
    life.begin()
    life.session.end("changed our mind")
    await settled()
    assert life.process.signals == ["KILL"]
    assert life.session._started.socket.fileno() == -1


async def test_it_is_drained_when_every_call_has_ended(life: Life) -> None:
    await life.serving()
    life.process.tier.gate("get_object").close()  # type: ignore[attr-defined]  # the fake tier's
    answers = [await life.call() for _ in range(3)]
    drained = asyncio.create_task(life.session.drained())
    await settled()
    assert not drained.done()
    for number in list(life.session._calls):
        life.session.cancel(number)
    await drained
    for answer in answers:
        message = await answer
        assert message is not None
        assert "cancelled" in json.dumps(message.fields)
    await life.session.drained()


async def test_forgotten_call_is_not_waited_for(life: Life) -> None:
    await life.serving()
    number, answer = life.session.call("get_object", ["k"], b"")
    life.session.forget(number)
    life.session.forget(number)
    assert await answer is None
    assert life.session.calls_under_way == 0
