"""The wheel never fires early, and cancelled timers never."""

import asyncio
import gc
import math
import weakref
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from broker.runtime.timer import LOOP_LATE_MS, SLICE_MS, TICK_MS, TimerWheel, WheelTimer
from tests.fakes.clock import ManualClock


class ManualLoop:
    """The one call of an event loop that the wheel makes."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.due: list[tuple[float, Handle]] = []

    def call_later(self, delay_s: float, callback: object) -> "Handle":
        handle = Handle(callback)
        self.due.append((self.clock.monotonic_ms() + delay_s * 1000, handle))
        return handle

    def advance(self, ms: float) -> None:
        target = self.clock.monotonic_ms() + ms
        while True:
            self.due = [(t, h) for t, h in self.due if h.callback is not None]
            ready = [(t, h) for t, h in self.due if t <= target]
            if not ready:
                break
            due, handle = min(ready, key=lambda item: item[0])
            self.clock.advance(max(due - self.clock.monotonic_ms(), 0))
            self.due.remove((due, handle))
            callback = handle.callback
            handle.callback = None
            assert callable(callback)
            callback()
        self.clock.advance(target - self.clock.monotonic_ms())


class Handle:
    def __init__(self, callback: object) -> None:
        self.callback: object | None = callback

    def cancel(self) -> None:
        self.callback = None


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def loop(clock: ManualClock) -> ManualLoop:
    return ManualLoop(clock)


@pytest.fixture
def wheel(loop: ManualLoop, clock: ManualClock) -> TimerWheel:
    return TimerWheel(loop, clock)  # type: ignore[arg-type]  # why: the wheel uses one call of the loop


def test_fires_within_a_tick_after_its_time(
    wheel: TimerWheel, loop: ManualLoop, clock: ManualClock
) -> None:
    fired: list[float] = []
    delays = [0.0, 1.0, 4.9, 5.0, 12.3, 500.0, 500.1]
    for delay in delays:
        wheel.call_later_ms(delay, lambda d=delay: fired.append(clock.monotonic_ms() - d))  # type: ignore[misc]  # why: a default argument binds the loop's value
    loop.advance(600)
    assert len(fired) == len(delays)
    assert all(0 <= late <= TICK_MS + LOOP_LATE_MS for late in fired)


def test_many_that_are_due_leave_the_loop_its_turns(
    wheel: TimerWheel, loop: ManualLoop, clock: ManualClock
) -> None:
    """Each takes two milliseconds; none is lost, twice, or out of order."""
    fired: list[int] = []
    turns: list[float] = []

    def fire(number: int) -> None:
        fired.append(number)
        clock.advance(2)
        if number == 3:
            wheel.call_later_ms(0, lambda: fired.append(-1))

    handles = [wheel.call_later_ms(1, lambda n=n: fire(n)) for n in range(20)]  # type: ignore[misc]  # why: a default argument binds the loop's value
    handles[10].cancel()
    clock.advance(TICK_MS + LOOP_LATE_MS)
    while len(fired) < 20:
        begun_ms = clock.monotonic_ms()
        loop.advance(0)
        turns.append(clock.monotonic_ms() - begun_ms)
        clock.advance(1)
    expected = [n for n in range(20) if n != 10]
    assert [n for n in fired if n != -1] == expected
    assert fired.count(-1) == 1
    assert max(turns) <= SLICE_MS + 2
    assert wheel.armed == 0


def test_an_earlier_timer_overtakes(wheel: TimerWheel, loop: ManualLoop) -> None:
    order: list[str] = []
    wheel.call_later_ms(100, lambda: order.append("late"))
    wheel.call_later_ms(10, lambda: order.append("early"))
    loop.advance(200)
    assert order == ["early", "late"]


def test_cancelled_timers_never_fire(wheel: TimerWheel, loop: ManualLoop) -> None:
    fired: list[int] = []
    wheel.call_later_ms(10, lambda: fired.append(1)).cancel()
    assert wheel.armed == 0
    loop.advance(100)
    assert fired == []


def test_a_tick_without_timers_does_not_wake_the_loop(
    wheel: TimerWheel, loop: ManualLoop, clock: ManualClock
) -> None:
    """A long poll that is answered at once leaves a tick half a second ahead."""
    woken, fired = 0, []
    count_due = loop.call_later

    def call_later(delay_s: float, callback: Callable[[], None]) -> Handle:
        def count() -> None:
            nonlocal woken
            woken += 1
            callback()

        return count_due(delay_s, count)

    loop.call_later = call_later  # type: ignore[method-assign, assignment]  # why: it counts
    wheel.call_later_ms(5_000.0, lambda: fired.append(clock.monotonic_ms()))
    for _ in range(400):
        wheel.call_later_ms(500.0, lambda: fired.append(-1.0)).cancel()
        loop.advance(TICK_MS)
    assert woken <= 6
    loop.advance(5_000.0)
    assert len(fired) == 1
    assert 5_000.0 <= fired[0] <= 5_000.0 + TICK_MS + LOOP_LATE_MS


class LoopOfMilliseconds(ManualLoop):
    """Rounds the clock and the delay, as uvloop does."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.calls = 0

    @override
    def call_later(self, delay_s: float, callback: object) -> Handle:
        self.calls += 1
        now_ms = self.clock.monotonic_ms()
        handle = Handle(callback)
        self.due.append((math.floor(now_ms) + round(delay_s * 1000), handle))
        return handle


def test_a_loop_of_milliseconds_is_asked_once_for_a_tick(clock: ManualClock) -> None:
    """Fired too early, it would be asked for the rest of a millisecond again and again."""
    loop = LoopOfMilliseconds(clock)
    wheel = TimerWheel(loop, clock)  # type: ignore[arg-type]  # why: the wheel uses one call of the loop
    fired: list[float] = []
    for number in range(100):
        clock.advance(0.37)
        due_ms = clock.monotonic_ms() + 13.3
        wheel.call_later_ms(13.3, lambda due=due_ms: fired.append(clock.monotonic_ms() - due))  # type: ignore[misc]  # why: a default argument binds the loop's value
        loop.advance(30.0 + number / 7)
    assert len(fired) == 100
    assert all(0 <= late <= TICK_MS + LOOP_LATE_MS for late in fired)
    assert loop.calls == 100


def test_a_failing_callback_does_not_stop_the_others(
    wheel: TimerWheel, loop: ManualLoop, caplog: pytest.LogCaptureFixture
) -> None:
    fired: list[int] = []

    def fail() -> None:
        raise ValueError("a bug")

    wheel.call_later_ms(10, fail)
    wheel.call_later_ms(10, lambda: fired.append(1))
    wheel.call_later_ms(20, lambda: fired.append(2))
    loop.advance(100)
    assert fired == [1, 2]
    assert "timer callback failed" in caplog.text


def test_a_callback_may_set_the_next_timer(wheel: TimerWheel, loop: ManualLoop) -> None:
    fired: list[int] = []

    def again() -> None:
        fired.append(len(fired))
        if len(fired) < 5:
            wheel.call_later_ms(10, again)

    wheel.call_later_ms(10, again)
    loop.advance(1000)
    assert fired == [0, 1, 2, 3, 4]


def test_closing_forgets_everything(wheel: TimerWheel, loop: ManualLoop) -> None:
    fired: list[int] = []
    wheel.call_later_ms(10, lambda: fired.append(1))
    wheel.close()
    loop.advance(100)
    assert fired == []


async def test_runs_on_a_real_loop() -> None:
    """The wheel and asyncio agree on what a delay is."""
    from storage.environment.clock import SystemClock

    wheel = TimerWheel(asyncio.get_running_loop(), SystemClock())
    done = asyncio.Event()
    wheel.call_later_ms(1, done.set)
    await asyncio.wait_for(done.wait(), 30)


def test_cancelled_timers_leave_their_memory(
    wheel: TimerWheel, loop: ManualLoop, clock: ManualClock
) -> None:
    """A long poll that is woken would lie there until its five minutes are over."""
    wheel.call_later_ms(250_000, lambda: None)
    # Those of other tests are garbage, or will be.
    gc.collect()
    before = sum(isinstance(one, WheelTimer) for one in gc.get_objects())
    alive: list[weakref.ref[Callable[[], None]]] = []
    for _ in range(20_000):

        def callback() -> None:
            raise AssertionError("it was cancelled")

        alive.append(weakref.ref(callback))
        wheel.call_later_ms(300_000, callback).cancel()
        del callback
        clock.advance(1)
    assert not any(reference() for reference in alive)
    assert sum(isinstance(one, WheelTimer) for one in gc.get_objects()) <= before + 1
    assert wheel.armed == 1
    # Nor do the ticks pile up in which they would have been due.
    assert len(wheel._ticks) == len(wheel._buckets) < 200
    loop.advance(400_000)
    assert wheel.armed == 0
    assert not wheel._ticks


@given(
    st.lists(
        st.tuples(st.sampled_from(["arm", "cancel", "advance"]), st.integers(0, 400)), max_size=200
    )
)
def test_every_timer_fires_once_unless_it_was_cancelled(steps: list[tuple[str, int]]) -> None:
    """However arming, cancelling and time follow each other."""
    clock = ManualClock()
    loop = ManualLoop(clock)
    wheel = TimerWheel(loop, clock)  # type: ignore[arg-type]  # why: the wheel uses one call of the loop
    fired: list[int] = []
    handles: list[WheelTimer] = []
    due: dict[int, float] = {}
    for step, number in steps:
        if step == "arm":
            timer = len(handles)
            handles.append(wheel.call_later_ms(number, lambda timer=timer: fired.append(timer)))  # type: ignore[misc]  # why: a default argument binds the loop's value
            due[timer] = clock.monotonic_ms() + number
        elif step == "advance":
            loop.advance(number)
            late = [
                t for t, at in due.items() if at + TICK_MS + LOOP_LATE_MS <= clock.monotonic_ms()
            ]
            assert set(late) <= set(fired)
        elif handles:
            timer = number % len(handles)
            handles[timer].cancel()
            if timer not in fired:
                due.pop(timer, None)
        assert wheel.armed == len([t for t in due if t not in fired])
    loop.advance(1_000)
    assert sorted(fired) == sorted(due)
    assert wheel.armed == 0
