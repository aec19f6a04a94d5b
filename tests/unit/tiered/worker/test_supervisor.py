"""The process is started, started again, and stopped; who waits is told."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.fakes.tiered.in_loop_processes import FakeProcesses
from tests.fakes.timer import ManualTimer
from tests.unit.tiered.worker.turns import settled, until
from tiered.errors import TierProcessError
from tiered.worker.frames import VERSION
from tiered.worker.session import PING_MS, REAP_MS, TERM_AFTER_MS
from tiered.worker.supervisor import (
    BACKOFF_MAX_MS,
    BACKOFF_MS,
    LEFT_AFTER_MS,
    NEAR_MS,
    SERVED_BACKOFF_MAX_MS,
    STABLE_MS,
    Supervisor,
    WorkerState,
)


class House:
    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.processes = FakeProcesses()
        self.supervisor = Supervisor(
            self.processes, {"version": VERSION}, timer=self.timer, clock=self.timer.clock
        )

    @property
    def state(self) -> WorkerState:
        return self.supervisor.state

    def is_in(self, state: WorkerState) -> bool:
        return self.supervisor.state is state

    async def running(self) -> None:
        await self.supervisor.session()

    async def lose(self) -> None:
        self.processes.newest.kill()
        await until(lambda: self.state is WorkerState.LOST)

    async def stop(self, drain_ms: float = 0.0) -> None:
        stopping = asyncio.create_task(self.supervisor.stop(drain_ms))
        for _ in range(2000):
            if stopping.done():
                break
            await settled(3)
            self.timer.advance(REAP_MS)
        await stopping


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    yield house
    await house.stop()
    await settled()
    assert house.is_in(WorkerState.STOPPED)
    assert all(process.status is not None for process in house.processes.started)


async def test_first_use_starts_it(house: House) -> None:
    assert (house.state, house.processes.started) == (WorkerState.STOPPED, [])
    session = await house.supervisor.session()
    assert house.is_in(WorkerState.RUNNING)
    assert await house.supervisor.session() is session
    assert (house.supervisor.starts, house.supervisor.restarts) == (1, 0)


async def test_start_is_asked_for_once(house: House) -> None:
    house.supervisor.start()
    house.supervisor.start()
    first, second = await asyncio.gather(house.supervisor.session(), house.supervisor.session())
    assert first is second
    assert len(house.processes.started) == 1


async def test_lost_process_is_started_again_after_a_backoff(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    await house.running()
    await house.lose()
    house.timer.advance(BACKOFF_MS - 1)
    assert house.is_in(WorkerState.LOST)
    house.timer.advance(1)
    assert house.is_in(WorkerState.STARTING)
    await house.running()
    assert (house.supervisor.restarts, house.supervisor.losses) == (1, 1)
    assert "tier process lost reason=the connection was closed" in caplog.text


async def test_backoff_doubles_up_to_a_limit_and_begins_anew_after_a_stable_run(
    house: House,
) -> None:
    await house.running()
    delay_ms = BACKOFF_MS
    for _ in range(10):
        await house.lose()
        house.timer.advance(delay_ms - 1)
        assert house.is_in(WorkerState.LOST)
        house.timer.advance(1)
        assert house.is_in(WorkerState.STARTING)
        await house.running()
        delay_ms = min(2 * delay_ms, SERVED_BACKOFF_MAX_MS)
    assert delay_ms == SERVED_BACKOFF_MAX_MS
    for _ in range(int(STABLE_MS / PING_MS)):
        house.timer.advance(PING_MS)
        await settled()
    await house.lose()
    house.timer.advance(BACKOFF_MS)
    assert house.is_in(WorkerState.STARTING)


async def test_backoff_of_failed_starts_has_a_higher_limit(house: House) -> None:
    house.processes.fork_error = OSError(11, "no room")
    house.supervisor.start()
    delay_ms = BACKOFF_MS
    for starts in range(1, 12):
        assert house.supervisor.starts == starts
        house.timer.advance(delay_ms - 1)
        assert house.supervisor.starts == starts
        house.timer.advance(1)
        delay_ms = min(2 * delay_ms, BACKOFF_MAX_MS)
    assert delay_ms == BACKOFF_MAX_MS


async def test_who_calls_while_it_is_lost_waits_for_the_next_start(house: House) -> None:
    await house.running()
    await house.lose()
    waiting = asyncio.create_task(house.supervisor.session())
    await settled()
    assert not waiting.done()
    house.timer.advance(BACKOFF_MS)
    session = await waiting
    assert session.pid == house.processes.newest.pid


async def test_who_waits_fails_with_the_start(house: House) -> None:
    house.processes.start_error = ValueError("no region")
    waiting = [asyncio.create_task(house.supervisor.session()) for _ in range(3)]
    for task in waiting:
        with pytest.raises(TierProcessError, match="no region"):
            await task
    assert house.is_in(WorkerState.LOST)


async def test_start_that_is_far_away_is_not_waited_for(house: House) -> None:
    house.processes.fork_error = OSError(11, "no room")
    with pytest.raises(TierProcessError, match="cannot be started"):
        await house.supervisor.session()
    while house.supervisor._due_ms - house.timer.clock.monotonic_ms() <= NEAR_MS:
        house.timer.advance(100)
    begin = house.timer.clock.monotonic_ms()
    with pytest.raises(TierProcessError, match="lost: it cannot be started"):
        await house.supervisor.session()
    assert house.timer.clock.monotonic_ms() == begin
    house.processes.fork_error = None
    house.timer.advance(house.supervisor._due_ms - begin)
    await house.running()


async def test_there_never_are_two(house: House) -> None:
    """One that cannot die yet (a disk that hangs) holds up the next."""
    await house.running()
    first = house.processes.newest
    poll = first.poll
    first.poll = lambda: None  # type: ignore[method-assign]  # not reaped yet
    await house.lose()
    house.timer.advance(100 * BACKOFF_MS)
    await settled()
    assert len(house.processes.started) == 1
    first.poll = poll  # type: ignore[method-assign]  # now it is
    house.timer.advance(REAP_MS)
    await house.running()
    assert len(house.processes.started) == 2


async def test_stop_waits_for_calls_then_ends_it(house: House) -> None:
    session = await house.supervisor.session()
    number, answer = session.call("get_object", ["k"], b"")
    gate = house.processes.newest.tier.gate("get_object")  # type: ignore[attr-defined]  # fake
    gate.close()
    await session.send(number, "get_object", ["k"], b"")
    stopping = asyncio.create_task(house.supervisor.stop(2_000))
    await until(lambda: gate.waiting == 1)
    assert house.is_in(WorkerState.STOPPING)
    with pytest.raises(TierProcessError, match="stopping: the broker stops"):
        await house.supervisor.session()
    gate.open()
    assert await answer is not None
    await until(lambda: session.ended is not None)
    await until(lambda: house.processes.newest.status is not None)
    house.timer.advance(REAP_MS)
    await stopping
    assert house.processes.newest.signals == []


async def test_stop_ends_calls_that_take_too_long(house: House) -> None:
    session = await house.supervisor.session()
    number, answer = session.call("get_object", ["k"], b"")
    gate = house.processes.newest.tier.gate("get_object")  # type: ignore[attr-defined]  # fake
    gate.close()
    await session.send(number, "get_object", ["k"], b"")
    await until(lambda: gate.waiting == 1)
    stopping = asyncio.create_task(house.supervisor.stop(2_000))
    await settled()
    house.timer.advance(1_999)
    await settled()
    assert not answer.done()
    house.timer.advance(1)
    assert await answer is None
    await until(lambda: house.processes.newest.status is not None)
    assert gate.waiting == 0
    house.timer.advance(REAP_MS)
    await stopping


async def test_stop_twice_and_start_again(house: House) -> None:
    await house.running()
    await asyncio.gather(house.stop(), house.stop())
    await house.supervisor.stop(0)
    assert house.supervisor.current is None
    await house.running()
    assert house.supervisor.restarts == 1


async def test_stop_goes_on_without_one_that_the_kernel_does_not_end(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """It is killed, and ends when the disk answers that it waits for; nothing hangs on it then."""
    await house.running()
    first = house.processes.newest
    first.ignores_end = first.ignores_terminate = True
    poll = first.poll
    first.poll = lambda: None  # type: ignore[method-assign]  # not reaped yet
    stopping = asyncio.create_task(house.supervisor.stop(0))
    await until(lambda: house.supervisor.current is None)
    house.timer.advance(LEFT_AFTER_MS - 1)
    await settled()
    assert not stopping.done()
    house.timer.advance(1)
    await stopping
    assert (house.state, first.signals) == (WorkerState.STOPPED, ["TERM", "KILL"])
    assert "does not end" in caplog.text
    await house.running()
    first.poll = poll  # type: ignore[method-assign]  # now it is
    house.timer.advance(REAP_MS)
    await settled()
    assert house.is_in(WorkerState.RUNNING)
    assert len(house.processes.started) == 2


async def test_stop_while_it_starts(house: House) -> None:
    waiting = asyncio.create_task(house.supervisor.session())
    await settled(1)
    assert house.is_in(WorkerState.STARTING)
    await house.stop()
    with pytest.raises(TierProcessError, match="the broker stops"):
        await waiting


async def test_stop_while_it_is_lost(house: House) -> None:
    await house.running()
    await house.lose()
    await house.stop()
    house.timer.advance(BACKOFF_MAX_MS)
    assert house.is_in(WorkerState.STOPPED)
    assert len(house.processes.started) == 1


async def test_process_that_ends_while_it_is_drained(house: House) -> None:
    await house.running()
    stopping = asyncio.create_task(house.supervisor.stop(60_000))
    house.processes.newest.kill()
    await settled()
    house.timer.advance(REAP_MS)
    await stopping


async def test_step_that_is_not_drawn_is_refused(house: House) -> None:
    with pytest.raises(AssertionError, match="from stopped to running"):
        house.supervisor._step(WorkerState.RUNNING)


@examples(60)
@given(
    st.lists(
        st.sampled_from(["use", "kill", "hang", "time", "stop", "bad", "good", "fork", "turn"]),
        max_size=20,
    )
)
def test_any_sequence_ends_stopped_with_nobody_left(steps: list[str]) -> None:
    """Whatever happens: one process at most, every caller answered, no process left over."""

    async def run() -> None:
        house = House()
        tasks: list[asyncio.Task[object]] = []
        for step in steps:
            if step == "use":
                tasks.append(asyncio.create_task(house.supervisor.session()))
            elif step in ("kill", "hang") and house.processes.started:
                process = house.processes.newest
                if step == "kill":
                    process.kill()
                elif process.connection._transport is not None:
                    process.hang()
            elif step == "time":
                for _ in range(30):
                    house.timer.advance(PING_MS)
                    await settled(5)
            elif step == "stop":
                await house.stop()
            elif step in ("bad", "good"):
                house.processes.start_error = ValueError("x") if step == "bad" else None
                house.processes.fork_error = None
            elif step == "fork":
                house.processes.fork_error = OSError("x")
            elif step == "turn":
                await settled()
            living = [process for process in house.processes.started if process.status is None]
            assert len(living) <= 1
        await settled()
        await house.stop()
        assert house.is_in(WorkerState.STOPPED)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(
            not isinstance(r, BaseException) or isinstance(r, TierProcessError) for r in results
        )
        assert all(process.status is not None for process in house.processes.started)
        house.timer.advance(TERM_AFTER_MS + BACKOFF_MAX_MS)
        assert house.timer.pending == 0
        await settled()

    asyncio.run(run())
