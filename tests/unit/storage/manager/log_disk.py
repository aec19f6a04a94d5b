"""A machine that brokers come up on, one after the other, without what serves clients."""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.manager.log_manager import LogManager, LogManagerSettings
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem

T = TypeVar("T")
CONFIG = TopicConfig()
A0 = TopicPartition("a", 0)
A1 = TopicPartition("a", 1)
B0 = TopicPartition("b", 0)
ID_A = UUID(int=1 << 100)
ID_B = UUID(int=2 << 100)


def unthrottled(_size: int, _check_done: Callable[[], None]) -> None:
    pass


class Disk:
    """A machine that brokers come up on, one after the other."""

    def __init__(self, *directories: str) -> None:
        self.clock = ManualClock()
        self.filesystem = FakeFilesystem(self.clock)
        self.directories = directories or ("/one",)
        self.seed = 0

    def manager(
        self,
        *,
        claim: bool = True,
        cleaner_throttle: Callable[[int, Callable[[], None]], None] = unthrottled,
        **settings: Any,
    ) -> LogManager:
        """A broker's logs before `load`."""
        self.seed += 1
        manager = LogManager(
            FakeEnvironment(
                filesystem=self.filesystem,
                clock=self.clock,
                randomness=SeededRandomness(self.seed),
            ),
            self.directories,
            settings=LogManagerSettings(log_cleaner_dedupe_buffer_size=1 << 16, **settings),
            cleaner_throttle=cleaner_throttle,
        )
        if claim:
            manager.startup.open_directories()
            manager.startup.claim("cluster", 1)
        return manager

    def started(self, config: TopicConfig = CONFIG) -> LogManager:
        """A broker's logs, serving."""
        manager = self.manager()
        manager.startup.load(lambda _topic: config)
        return manager


def append(log: Log, count: int = 1, *, key: bytes = b"k", value: bytes | None = b"v") -> None:
    """Write records and commit them."""
    for _ in range(count):
        batch = build_batch([(key, value, (), 1_700_000_000_000)])
        log.writer.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=1_700_000_000_000)
    log.update_high_watermark(log.log_end_offset)


def append_durably(log: Log, count: int) -> None:
    """As `append`, and flush them: they may be compacted."""
    append(log, count)
    log.flusher.flush()


def killed(disk: Disk) -> None:
    """The process has died; the page cache is there."""
    disk.filesystem = disk.filesystem.after_crash(KEEP_ALL)
