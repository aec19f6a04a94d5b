"""Which log is compacted next."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from config.topic import TopicConfig
from storage.cleaner.cleaning import CleaningAbortedError, ReplacesSegments
from storage.cleaner.log_cleaner_manager import LogCleanerManager, LogToClean, measure
from storage.producers.state import ProducerStateManager
from storage.types.topic_partition import TopicPartition
from tests.fakes.filesystem import FakeFilesystem

NOW = 100_000
COMPACT = ("compact",)
A = TopicPartition("a", 0)


@dataclass(frozen=True)
class Facts:
    base_offset: int
    size: int
    largest_timestamp: int
    first_timestamp: int


@dataclass
class FakeLog:
    """Segments of 10 offsets and 100 bytes; the last one is active."""

    topic_partition: TopicPartition = A
    segments: int = 5
    config: TopicConfig = field(default_factory=lambda: TopicConfig(cleanup_policy=COMPACT))
    log_start_offset: int = 0
    last_stable_offset: int = 50
    recovery_point: int = 50
    indexed_end_offset: int = 50
    directory: str = "/d/a-0"
    producer_state: ProducerStateManager = field(
        default_factory=lambda: ProducerStateManager(A, "/d", FakeFilesystem())
    )

    @property
    def log_end_offset(self) -> int:
        return self.segments * 10

    def segment_facts(self) -> Sequence[Facts]:
        return [
            Facts(index * 10, 100, 10_000 * (index + 1), 10_000 * index + 1)
            for index in range(self.segments)
        ]

    @property
    def replacement(self) -> ReplacesSegments:
        raise NotImplementedError


def shape(chosen: LogToClean) -> tuple[int, int, int, int]:
    return (
        chosen.first_dirty_offset,
        chosen.first_uncleanable_offset,
        chosen.clean_bytes,
        chosen.cleanable_bytes,
    )


def log(**config: object) -> FakeLog:
    return FakeLog(config=TopicConfig(cleanup_policy=COMPACT, **config))  # type: ignore[arg-type]  # the model's keys


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        (None, (0, 40, 0, 400)),
        (0, (0, 40, 0, 400)),
        (20, (20, 40, 200, 200)),
        (25, (25, 40, 300, 200)),
        (40, (40, 40, 400, 0)),
        (45, (45, 40, 400, 0)),
        (51, (0, 40, 0, 400)),
    ],
)
def test_range(checkpoint: int | None, expected: tuple[int, int, int, int]) -> None:
    """From the checkpoint to the active segment; one beyond the log counts as none."""
    assert shape(measure(FakeLog(), checkpoint, NOW)) == expected


@pytest.mark.parametrize(("recovery_point", "bound"), [(50, 40), (40, 40), (39, 30), (0, 0)])
def test_what_is_not_on_disk_is_left_alone(recovery_point: int, bound: int) -> None:
    """Else a power cut would take the last record of a key, and compaction the one before it."""
    chosen = measure(FakeLog(recovery_point=recovery_point), None, NOW)
    assert chosen.first_uncleanable_offset == bound


def test_checkpoint_below_the_log_start() -> None:
    """DeleteRecords has gone further than compaction."""
    assert measure(FakeLog(log_start_offset=15), 5, NOW).first_dirty_offset == 15


@pytest.mark.parametrize(("stable", "bound"), [(50, 40), (40, 40), (39, 30), (30, 30), (5, 0)])
def test_last_stable_offset_bounds(stable: int, bound: int) -> None:
    """The segment that holds it is not touched."""
    assert measure(FakeLog(last_stable_offset=stable), 0, NOW).first_uncleanable_offset == bound


@pytest.mark.parametrize(("indexed", "bound"), [(50, 40), (30, 30), (29, 20), (5, 0)])
def test_what_is_aborted_and_in_no_index_bounds(indexed: int, bound: int) -> None:
    """The segment in which such a transaction begins is not read."""
    assert measure(FakeLog(indexed_end_offset=indexed), 0, NOW).first_uncleanable_offset == bound


@pytest.mark.parametrize(("lag", "bound"), [(0, 40), (60_000, 40), (60_001, 30), (100_000, 0)])
def test_minimum_lag(lag: int, bound: int) -> None:
    """Young segments stay whole (KIP-58)."""
    assert measure(log(min_compaction_lag_ms=lag), 0, NOW).first_uncleanable_offset == bound


def test_maximum_lag() -> None:
    """An overdue log is cleaned however clean it is (KIP-354)."""
    overdue = measure(log(max_compaction_lag_ms=60_000, min_cleanable_dirty_ratio=1.0), 30, NOW)
    assert overdue.compaction_delay_ms == NOW - 60_000 - 30_001
    assert overdue.is_due
    assert not measure(
        log(max_compaction_lag_ms=80_000, min_cleanable_dirty_ratio=1.0), 30, NOW
    ).is_due
    assert not measure(log(max_compaction_lag_ms=1), 40, NOW).is_due


@pytest.mark.parametrize(("ratio", "due"), [(0.24, True), (0.25, False), (0.5, False)])
def test_dirty_ratio(ratio: float, due: bool) -> None:
    """100 of 400 bytes are dirty: above the ratio, not at it."""
    candidate = measure(log(min_cleanable_dirty_ratio=ratio), 30, NOW)
    assert candidate.dirty_ratio == 0.25
    assert candidate.is_due is due


def test_dirtiest_first() -> None:
    """And not the same one twice while it is being cleaned; other policies never."""
    a, b, c = (TopicPartition(name, 0) for name in "abc")
    logs = [FakeLog(a), FakeLog(b), FakeLog(c, config=TopicConfig())]
    manager = LogCleanerManager()
    checkpoints = {a: 20, b: 10}
    first = manager.take_dirtiest(logs, checkpoints, NOW)
    assert first is not None
    assert first.log.topic_partition == b
    assert manager.max_dirty_ratio == 0.75
    assert not manager.try_pause(b)
    checkpoints[a] = 10
    second = manager.take_dirtiest(logs, checkpoints, NOW)
    assert second is not None
    assert second.log.topic_partition == a
    assert manager.take_dirtiest(logs, checkpoints, NOW) is None
    manager.done(logs[1])
    assert manager.take_dirtiest(logs, checkpoints, NOW) is not None


def test_paused_and_uncleanable_logs_are_left_alone() -> None:
    """Until resumed; for ever."""
    a = TopicPartition("a", 0)
    manager = LogCleanerManager()
    assert manager.try_pause(a)
    assert manager.try_pause(a)
    assert manager.take_dirtiest([FakeLog(a)], {}, NOW) is None
    manager.resume(a)
    assert manager.take_dirtiest([FakeLog(a)], {}, NOW) is None
    manager.resume(a)
    log = FakeLog(a)
    assert manager.take_dirtiest([log], {}, NOW) is not None
    assert not manager.try_pause(a)
    manager.done(log)
    manager.mark_uncleanable(a, "damage")
    assert manager.take_dirtiest([FakeLog(a)], {}, NOW) is None
    manager.forget(a)
    assert manager.take_dirtiest([FakeLog(a)], {}, NOW) is not None


def test_deletion_waits_a_moment_for_the_run_to_stop() -> None:
    """Then nobody writes there any more."""
    log = FakeLog()
    manager = LogCleanerManager()
    assert manager.take_dirtiest([log], {}, NOW) is not None
    manager.check_done(log)
    stopped = threading.Event()

    def run() -> None:
        while True:
            try:
                manager.check_done(log)
            except CleaningAbortedError:
                stopped.set()
                manager.done(log)
                return

    thread = threading.Thread(target=run)
    thread.start()
    manager.abandon([A], timeout_s=60)
    assert stopped.is_set()
    thread.join()
    assert manager.abandoned_count == 0
    assert manager.take_dirtiest([FakeLog()], {}, NOW) is not None


def test_deletion_needs_no_consent_of_a_run_that_hangs() -> None:
    """It is without effect from then on; its directory stays, and the new log's files are safe."""
    old, new = FakeLog(), FakeLog(directory="/d/a-0 of another topic")
    manager = LogCleanerManager()
    manager.take_dirtiest([old], {}, NOW)
    manager.abandon([A, TopicPartition("b", 0)], timeout_s=0.01)
    with pytest.raises(CleaningAbortedError):
        manager.check_done(old)
    assert manager.is_aborted(old)
    assert manager.holds(old.directory)
    assert not manager.holds(new.directory)
    assert manager.take_dirtiest([new], {}, NOW) is None
    manager.done(old)
    assert not manager.holds(old.directory)
    assert manager.take_dirtiest([new], {}, NOW) is not None
    manager.check_done(new)


def test_abort_all() -> None:
    """At shutdown."""
    log = FakeLog()
    manager = LogCleanerManager()
    manager.take_dirtiest([log], {}, NOW)
    manager.abort_all()
    with pytest.raises(CleaningAbortedError):
        manager.check_done(log)
