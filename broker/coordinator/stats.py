"""Counters of a coordinator's loads, read at scrape time."""

from dataclasses import dataclass


@dataclass(slots=True)
class LoadStats:
    """Counters since the start; they only grow.

    Attributes:
        loaded_partitions: Loads that ended with a shard.
        loaded_records: Records read by them.
        loading_ms: Time they took, in milliseconds.
        load_failures: Loads that failed, and left their partition without a coordinator.
        skipped_records: Records skipped: damaged, or of a newer release.
        reloads: Shards that failed, and were loaded again: memory may differ from the log.
    """

    loaded_partitions: int = 0
    loaded_records: int = 0
    loading_ms: float = 0.0
    load_failures: int = 0
    skipped_records: int = 0
    reloads: int = 0
