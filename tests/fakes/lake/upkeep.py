"""Upkeep of the tables of `lake_job`: in a directory, with small files by any measure."""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.lake.errors import CommitConflictError, ForeignTableError, TableUnavailableError
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.maintain.compaction import Compaction
from pipeline.lake.maintain.groups import GroupSettings
from pipeline.lake.maintain.histories import history_of
from pipeline.lake.maintain.left_over import Ages
from pipeline.lake.maintain.sort_order import SortBy
from pipeline.lake.maintain.upkeep import Kept, Maintained, Upkeep
from pipeline.lake.settings.config import parse_partition_field
from pipeline.lake.sinks.base import Sink, TableView
from pipeline.lake.work.local_runner import LocalRunner
from pipeline.lake.work.task import OpenStore, TableTarget
from storage.environment.clock import Clock, SystemClock, sleep_ms
from storage.environment.randomness import SystemRandomness
from tests.fakes.lake.hooks import Hook, HookedSink, OpenHooked
from tests.fakes.lake.jobs import Deadly
from tests.fakes.lake.numbers_log import read_rows
from tests.fakes.lake.tables import OpenDirectory, open_sink

HOUR_MS = 3_600_000

SETTINGS = GroupSettings(target_bytes=40_000, small_bytes=20_000, min_files=2)
"""A file of a task of `lake_job` has some 2 to 3 kB."""


HOURLY = Ages(HOUR_MS, HOUR_MS)


class AheadClock:
    """This machine's, so many milliseconds ahead."""

    def __init__(self, ahead_ms: int) -> None:
        self.ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return SystemClock().now_ms() + self.ahead_ms

    def monotonic_ms(self) -> float:
        return SystemClock().monotonic_ms()

    def monotonic_s(self) -> float:
        return SystemClock().monotonic_s()


def lake_upkeep(
    kind: str,
    root: Path,
    *,
    partition_by: Sequence[str] = (),
    quarantine: bool = True,
    settings: GroupSettings = SETTINGS,
    sort_by: SortBy = "timestamp",
    ages: Ages = HOURLY,
    hook: Hook | None = None,
    clock: Clock | None = None,
    max_bytes: int = 1 << 30,
) -> Upkeep:
    """Of `lake_job`'s tables in the same directory."""
    plain = open_sink(kind, root, partition_by=partition_by)
    plain_bad = open_sink(kind, root, name="orders_quarantine") if quarantine else None
    rows: Sink = plain if hook is None else HookedSink(plain, hook)
    bad: Sink | None = plain_bad
    if hook is not None and plain_bad is not None:
        bad = HookedSink(plain_bad, hook)
    fields = tuple(parse_partition_field(one) for one in partition_by)

    def target() -> TableTarget:
        opener: OpenStore = OpenDirectory(rows.store.uri)
        if hook is not None:
            opener = OpenHooked(opener, hook)
        options = WriterOptions(fields, rows.keeps_partition_columns, 2 * settings.target_bytes)
        return TableTarget(opener, rows.folder, options)

    def compaction(kept: Callable[[TableView], frozenset[str]]) -> Compaction:
        return Compaction(
            rows,
            target,
            settings._replace(sort_by=sort_by),
            SystemRandomness(),
            max_bytes=max_bytes,
            kept=kept,
        )

    return Upkeep(
        Kept(rows, history_of(plain)),
        None if bad is None or plain_bad is None else Kept(bad, history_of(plain_bad)),
        compaction,
        ages,
        SystemClock() if clock is None else clock,
    )


def maintain(upkeep: Upkeep, *, dry_run: bool = False) -> list[Maintained]:
    """All of it, in this process."""
    return upkeep.run(upkeep.groups(), LocalRunner(read_rows), dry_run=dry_run)


def keep_in_shape(kind: str, root: str, steps: int) -> None:
    """What a process does: upkeep once, and die at a step of it; 0: do not."""
    hook = Deadly(steps, signal.SIGKILL)
    for _ in range(1000):
        try:
            maintain(lake_upkeep(kind, Path(root), hook=hook))
        except (TableUnavailableError, CommitConflictError):
            # SQLite's lock is with another process, or a job commits all the time.
            sleep_ms(5)
        except ForeignTableError as error:
            if "run the job first" not in str(error):
                raise
            sleep_ms(20)
        else:
            return
    raise AssertionError("upkeep is never done")
