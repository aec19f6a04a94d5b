"""Maintenance of a job's tables, composed from its settings: `maintain_job`.

Nothing is asked of the log: the table's own offsets say what it has. A runner is opened only where
there are files to put together.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.lake.app.assembly import open_runner
from pipeline.lake.app.locations import OpenTableStore, open_sinks
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.maintain.compaction import Compaction
from pipeline.lake.maintain.groups import GroupSettings
from pipeline.lake.maintain.histories import history_of
from pipeline.lake.maintain.left_over import Ages
from pipeline.lake.maintain.upkeep import Kept, Maintained, Upkeep
from pipeline.lake.settings.config import JobConfig, small_file_bytes
from pipeline.lake.sinks.base import Sink, TableView
from pipeline.lake.work.task import TableTarget
from storage.environment.clock import SystemClock
from storage.environment.randomness import SystemRandomness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def maintain_job(
    config: JobConfig, session: "SparkSession | None" = None, *, dry_run: bool = False
) -> list[Maintained]:
    """Keep a job's tables in shape, once; what was done to each.

    Args:
        config: The job; `maintain` says how.
        session: Of Spark, if there is one already; it stays.
        dry_run: Only say what would be done.

    Raises:
        LakeError: See `pipeline.lake.errors`.
    """
    upkeep = open_upkeep(config)
    groups = upkeep.groups()
    if dry_run or not groups:
        return upkeep.run(groups, None, dry_run=dry_run)
    with open_runner(config, session) as runner:
        return upkeep.run(groups, runner)


def open_upkeep(config: JobConfig) -> Upkeep:
    """Upkeep of a job's tables."""
    rows, quarantine = open_sinks(config)
    settings = config.maintain

    def compaction(kept: Callable[[TableView], frozenset[str]]) -> Compaction:
        return Compaction(
            rows,
            target(config, rows),
            group_settings(config),
            SystemRandomness(),
            max_bytes=settings.max_bytes,
            kept=kept,
        )

    return Upkeep(
        Kept(rows, history_of(rows)),
        None if quarantine is None else Kept(quarantine, history_of(quarantine)),
        # Files of a keyed table are what its keys' buckets need them to be.
        compaction if config.mode == "append" else None,
        Ages(settings.keep_snapshots_ms, settings.orphans_older_than_ms),
        SystemClock(),
    )


def group_settings(config: JobConfig) -> GroupSettings:
    """Limits by which files are small."""
    target_bytes = config.sink.target_file_bytes
    return GroupSettings(
        target_bytes,
        small_file_bytes(config),
        config.maintain.min_files,
        config.maintain.sort_by,
    )


def target(config: JobConfig, sink: Sink) -> Callable[[], TableTarget]:
    """The target of rewritten files; resolved once there is a table."""

    def found() -> TableTarget:
        # A group makes one file: it is cut only where rows take more room than they did before.
        writer = WriterOptions(
            config.sink.partition_by,
            sink.keeps_partition_columns,
            2 * config.sink.target_file_bytes,
        )
        return TableTarget(OpenTableStore(sink.store.uri, config.sink_store), sink.folder, writer)

    return found
