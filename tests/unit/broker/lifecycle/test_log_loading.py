"""From logs that are closed to a broker that is ready."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.lifecycle.log_loading import PROGRESS_MS, LogLoading
from storage.checkpoints.log_loading import LoadProgress
from storage.errors import DiskError
from tests.fakes.environment import FakeEnvironment


class World:
    """A log manager and a life cycle of logs of which only what loading asks for is there."""

    def __init__(self) -> None:
        self.environment = FakeEnvironment()
        self.events: list[str] = []
        self.failure: Exception | None = None
        self.progress = LoadProgress()
        manager: Any = SimpleNamespace(progress=self.progress)
        replicas: Any = SimpleNamespace(partition_count=2)
        self.loading = LogLoading(
            self.environment,
            manager,
            replicas,
            make_background=self._background,
            settle_directories=self._settle,
            on_loaded=lambda _background: self.events.append("loaded"),
            fail=lambda reason: self.events.append(f"failed: {reason}"),
        )
        self.stop_meanwhile = False

    def _background(self) -> Any:
        return SimpleNamespace(start=lambda: self.events.append("maintenance"))

    async def _settle(self) -> None:
        self.events.append("settled")

    async def _open_logs(self, threads: int) -> None:
        self.events.append(f"{threads} threads")
        self.loading.on_serving()
        self.loading.on_serving()
        if self.stop_meanwhile:
            self.loading.stop()
            self.progress.is_stopped = True
        if self.failure is not None:
            raise self.failure

    async def load(self) -> list[str]:
        lifecycle: Any = SimpleNamespace(load=self._open_logs)
        await self.loading.load(lifecycle, 3)
        return self.events


async def test_maintenance_begins_with_the_first_log_and_readiness_comes_last() -> None:
    world = World()
    assert await world.load() == ["3 threads", "maintenance", "settled", "loaded"]
    assert world.loading.is_ready


async def test_a_broker_that_stops_meanwhile_does_not_become_ready() -> None:
    """Nothing is settled: which logs are missing is not known."""
    world = World()
    world.stop_meanwhile = True
    assert await world.load() == ["3 threads", "maintenance"]
    assert not world.loading.is_ready
    world.loading.background = None
    world.loading.on_serving()
    assert world.loading.background is None


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (DiskError("read refused", "/d", 5), "read refused"),
        (ValueError("a fault of ours"), "logs cannot be loaded"),
    ],
)
async def test_a_failure_ends_the_broker(failure: Exception, reason: str) -> None:
    world = World()
    world.failure = failure
    events = await world.load()
    assert events[:2] == ["3 threads", "maintenance"]
    assert len(events) == 3
    assert reason in events[2]
    assert not world.loading.is_ready


async def test_a_line_says_how_far_it_is_until_it_is_ready(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    timer = world.environment.timer
    caplog.set_level("INFO")
    world.loading._log_progress()
    timer.advance(PROGRESS_MS)
    assert sum("recovering logs" in line for line in caplog.messages) == 2
    await world.load()
    caplog.clear()
    timer.advance(3 * PROGRESS_MS)
    assert caplog.messages == []
