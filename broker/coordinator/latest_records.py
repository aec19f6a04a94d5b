"""The newest value of each key of a log that is being loaded.

The log holds every change since its last compaction. So shards whose records replace each other
collect them undecoded first, and decode what is left once.

Transactional records wait for their producer's marker, and are dropped by an abort. Those whose
marker has not come by the end of the log are still open (`pending`).

Source: Kafka, CoordinatorLoaderImpl.java; OffsetMetadataManager.java (replay).
"""

from typing import NamedTuple

from broker.coordinator.shard import NO_PRODUCER


class LatestRecord(NamedTuple):
    """A value as it was written, and where."""

    value: bytes
    offset: int


class LatestRecords:
    """The last record of each key, collected during a replay.

    Attributes:
        latest: By undecoded key.
        pending: By producer id, then by key: records of open transactions.
    """

    __slots__ = ("_transactional_below", "latest", "pending")

    def __init__(self, *, transactional_below: bytes = b"") -> None:
        """Only keys below `transactional_below` wait for a marker; others never do."""
        self._transactional_below = transactional_below
        self.latest: dict[bytes, LatestRecord] = {}
        self.pending: dict[int, dict[bytes, LatestRecord]] = {}

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        """Add a record; a tombstone drops pending ones as well. See `Shard.replay`."""
        if value is None:
            self.latest.pop(key, None)
            for waiting in self.pending.values():
                waiting.pop(key, None)
        elif producer_id != NO_PRODUCER and key < self._transactional_below:
            self.pending.setdefault(producer_id, {})[key] = LatestRecord(value, offset)
        else:
            self.latest[key] = LatestRecord(value, offset)

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """End a producer's transaction; later records of the same key stay."""
        waiting = self.pending.pop(producer_id, {})
        if commit:
            for key, record in waiting.items():
                existing = self.latest.get(key)
                if existing is None or existing.offset < record.offset:
                    self.latest[key] = record
