"""One value holds what a part needs of its node, and tests have one they move by hand."""

from dataclasses import FrozenInstanceError, replace

import pytest

from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment


def test_an_environment_does_not_change() -> None:
    # Parts read its fields once: a field set later would reach some of them and not others.
    environment = FakeEnvironment()
    with pytest.raises(FrozenInstanceError):
        environment.clock = ManualClock()  # type: ignore[misc]  # that is the test


async def test_an_environment_without_a_loop_refuses_to_wait() -> None:
    # An offline tool that armed a timer would wait for a call that never comes.
    filesystem = LocalFilesystem()
    environment = Environment.without_loop(
        clock=SystemClock(), filesystem=filesystem, randomness=SeededRandomness(1)
    )
    assert environment.filesystem is filesystem
    with pytest.raises(RuntimeError, match="no event loop to call"):
        environment.timer.call_later_ms(0, print)
    with pytest.raises(RuntimeError, match="no event loop to run"):
        await environment.run_blocking(print)


async def test_the_fake_has_one_time_for_clock_timer_and_disk() -> None:
    environment = FakeEnvironment()
    fired: list[int] = []
    started_ms = environment.clock.now_ms()
    environment.timer.call_later_ms(50, lambda: fired.append(environment.clock.now_ms()))
    environment.timer.advance(60)
    assert fired == [started_ms + 50]
    environment.filesystem.mkdir("/data")
    environment.filesystem.replace_bytes("/data/a", b"a")
    assert environment.filesystem.mtime_ms("/data/a") == started_ms + 60
    assert await environment.run_blocking(int, "7") == 7


def test_the_fake_takes_the_clock_it_is_given() -> None:
    clock = ManualClock(5)
    environment = FakeEnvironment(clock=clock)
    environment.timer.advance(2)
    assert (environment.clock, clock.now_ms()) == (clock, 7)


def test_a_copy_may_have_another_field() -> None:
    environment = FakeEnvironment()
    other = replace(environment, randomness=SeededRandomness(2))
    assert other.clock is environment.clock
    assert other.randomness is not environment.randomness
